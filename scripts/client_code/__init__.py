"""The generated parts of the clients for other languages, from the control port's document."""
