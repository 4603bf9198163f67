"""The two drafts of KIP-455 that came before its implementation."""
