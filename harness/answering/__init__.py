"""What comes after retrieval on public data: readers' answers, judgements of them, and agreement.

Everything starts from stored runs. `asking` puts a question to a model; `answers` has a reader answer
from what was served; `grading` says how each benchmark judges, `matching` how texts are compared,
`judging` and `pairwise` judge; `scores` adds up, and `agreement` compares two judges.
"""
