"""Pictures that are made of results and not of estimators: those of the demonstration and of `reproduction`."""
