"""Write a DataFrame to a dataset: tasks write files, and the driver commits all of them at once."""
