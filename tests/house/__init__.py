"""What keeps the house in order: the pages that are made from code, the package, the types that users see."""
