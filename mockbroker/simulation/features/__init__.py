"""The features of a cluster (KIP-584), and how UpdateFeatures changes their levels."""
