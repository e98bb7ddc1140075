# cause: permission
# exit: 126
# A script without the right to be executed.
echo "echo training" > train.sh
chmod 600 train.sh
./train.sh
