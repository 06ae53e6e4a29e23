"""What a training process says about itself, for one rank; `recorder` is what a program calls.

`facts` are its single events and `spans` its phases; `steps` adds up the steps, `leaving` tells why
a loop over them was left; `compiling` is told by torch. `crash`, `termination` and `exits` have the
last words of a process, `handover` decides who speaks for it, `versions` names what it runs on.
"""
