# cause: success
# near-miss of: not_a_number
# exit: 0
"""A table with holes."""

print("      city  temperature  loss_ratio")
print("0     Bern         12.5         NaN")
print("1    Basel          NaN        0.25")
print("2   Zürich         11.0         NaN")
print("mean of temperature, nan left out: 11.75")
