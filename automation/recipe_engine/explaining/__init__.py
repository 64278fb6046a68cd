"""Why a step of a plan is what it is: who decided what, recorded while the request is carried out on paper.

In order, each module imports only earlier ones and earlier packages:

origins, explanation, explain.
"""
