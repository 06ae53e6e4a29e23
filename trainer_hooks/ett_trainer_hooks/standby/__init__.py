"""A process that stands by for each local rank: imports done, data warm, waiting to take over.

Four processes have to do with it. `ett run` starts a *keeper* a local rank (`keeper`), which forks
the *standby* itself (`understudy`): that one prepares and waits. When torchrun starts the rank anew,
its process finds the keeper's socket (`handing_over`), hands it its arguments, environment, working
directory and standard streams, and from then on only passes signals on and ends as the standby does.
Where anything does not fit, it starts as it would have anyway.
"""
