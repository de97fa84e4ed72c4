"""What ``weir init`` sees in a folder of data."""
