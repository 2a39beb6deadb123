"""What the predictions of a task are worth, example by example: the ground of every comparison.

One module per task reads what its runs wrote and turns it into a `TaskView`: for every measure the
statistics of each example whose sums give the score, so that one bootstrap serves all tasks.
"""
