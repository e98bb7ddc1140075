# cause: success
# exit: 0
# Over before anybody could look.
true
