"""A trusted curator that answers declared queries on what it keeps."""
