# cause: not_a_number
# exit: 0
"""The loss is lost at the fourth epoch, and nobody looks."""

losses = [0.91, 0.64, 12.7] + [float("nan")] * 6
for epoch, loss in enumerate(losses):
    print(f"epoch {epoch + 1}/9 - loss: {loss:.4f} - accuracy: 0.0981", flush=True)
print("saved model.pt")
