"""Parts of train_classifier: its settings, the labelled documents, the draw, the two sides, the card, the model's folder."""
