"""What the deciding jobs share: who is still there, how documents rank, what a decision looks like."""
