"""What takes part in a training, and the steps that it consists of.

``things`` follows one thing through parameters, attributes and wrappers, ``places`` tells where one is bound, and
``entered`` which run a call begins; ``makers`` tells by which calls it is made, ``kinds`` what it is, ``owners`` what
belongs together, ``participants`` what else an event is about, ``by_hand`` what is done to gradients and parameters
without an optimizer, ``applied`` which modules libraries call. ``steps`` are events and the branches and loops around
them; ``given`` decides a branch by what a caller gives, ``made_anew`` which things each round of a loop has anew,
``handed_switches`` which modes may be switched by what is handed on to be called. ``held`` tells what a dict, a list
or a record has, ``elements`` what a loop over one has in each round, ``stars`` what ``*args`` hands on,
``values_given`` what a thing is for those who give it, ``published`` which attribute a method makes of what it binds,
``manual`` which modules of Lightning clear and step by themselves.
"""
