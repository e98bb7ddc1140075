//! Messages of schedulers and shells, and of mistakes in programs.

use super::*;
use crate::why::Cause::{self, *};
use crate::why::Grade::{self, Likely, Proven, Unknown};

fn check(rows: &[(&str, Cause, Grade)]) {
    for (text, cause, grade) in rows {
        let said = first(text);
        assert_eq!((said.cause, said.grade), (*cause, *grade), "{text}\n{said:?}");
    }
}

#[test]
fn schedulers() {
    check(&[
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=440575.0. Some of the step tasks have been OOM Killed.",
            CgroupOom,
            Proven,
        ),
        (
            "slurmstepd: error: Detected 2 oom_kill events in StepId=77.13. Some of the step tasks have been OOM Killed.",
            CgroupOom,
            Proven,
        ),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in step 3495064.0 cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.",
            CgroupOom,
            Proven,
        ),
        (
            "slurmstepd: error: Detected 2 oom-kill event(s) in step 3756240.batch cgroup.",
            CgroupOom,
            Proven,
        ),
        (
            "srun: error: nid001277: tasks 1-3: Out Of Memory",
            CgroupOom,
            Proven,
        ),
        (
            "slurmstepd: error: Exceeded step memory limit at some point.",
            CgroupOom,
            Unknown,
        ),
        (
            "slurmstepd: error: *** JOB 123 ON node01 CANCELLED AT 2021-10-27T19:35:36 DUE TO TIME LIMIT ***",
            TimeLimit,
            Proven,
        ),
        (
            "slurmstepd: error: *** STEP 440575.0 ON nid001277 CANCELLED AT 2023-12-05T07:16:01 ***",
            Stopped,
            Likely,
        ),
        (
            "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2023-12-05T07:16:01 DUE TO PREEMPTION ***",
            Stopped,
            Proven,
        ),
        (
            "slurmstepd: error: Job 123 exceeded memory limit (10243748 > 10240000), being killed",
            OomDaemon,
            Proven,
        ),
        ("State: OUT_OF_MEMORY (exit code 0)", CgroupOom, Proven),
        (
            "123.batch         batch            account1          8 OUT_OF_ME+    0:125",
            CgroupOom,
            Proven,
        ),
        (
            "train-0   0/1     OOMKilled   2          3m10s",
            CgroupOom,
            Proven,
        ),
        ("State: TIMEOUT (exit code 0)", TimeLimit, Proven),
        (
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
            OomDaemon,
            Proven,
        ),
        (
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
            TimeLimit,
            Proven,
        ),
        ("TERM_OWNER: job killed by owner.", Stopped, Proven),
        (
            "=>> PBS: job killed: mem 8401756kb exceeded limit 8388608kb",
            OomDaemon,
            Proven,
        ),
        (
            "=>> PBS: job killed: walltime 3626 exceeded limit 3600",
            TimeLimit,
            Proven,
        ),
        ("      Reason:       OOMKilled", CgroupOom, Proven),
        ("        reason: OOMKilled", CgroupOom, Proven),
        ("            \"OOMKilled\": true,", CgroupOom, Proven),
        ("  reason: Evicted", OomDaemon, Unknown),
        (
            "  message: 'The node was low on resource: memory. Container node was using 35505620Ki, which exceeds its request of 12Gi. '",
            OomDaemon,
            Proven,
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20948Ki. Container docker-build was using 25378008Ki, request is 15234375Ki, has larger consumption of memory. ",
            OomDaemon,
            Proven,
        ),
        (
            "The node was low on resource: ephemeral-storage. Container main was using 20Gi, which exceeds its request of 0.",
            DiskFull,
            Proven,
        ),
        (
            "2022-12-01T17:39:21.5192954Z ##[error]The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.",
            Stopped,
            Unknown,
        ),
        (
            "The hosted runner: GitHub Actions 8 lost communication with the server. Anything in your workflow that terminates the runner process, starves it for CPU/Memory, or blocks its network access can cause this error.",
            OomDaemon,
            Unknown,
        ),
        ("##[error]The operation was canceled.", Stopped, Likely),
        (
            "Oct 07 19:16:10 host earlyoom[26328]: sending SIGTERM to process 63745 uid 1000 \"python3\": badness 748, VmRSS 538 MiB",
            OomDaemon,
            Proven,
        ),
        (
            "killing process 27541 \"bash\" with signal 15: badness 550, VmRSS 7609 MiB",
            OomDaemon,
            Proven,
        ),
        (
            "Dec 18 19:34:56 user-desktop systemd-oomd[840]: Killed /user.slice/user-1001.slice/vte-spawn-dbb4a75e.scope due to memory pressure for /user.slice/user-1001.slice/user@1001.service being 51.07% > 50.00% for > 20s with reclaim activity",
            OomDaemon,
            Proven,
        ),
        (
            "systemd[1]: train.service: A process of this unit has been killed by the OOM killer.",
            CgroupOom,
            Likely,
        ),
        (
            "systemd[1837]: vte-spawn-dbb4a75e.scope: systemd-oomd killed 12 process(es) in this unit.",
            OomDaemon,
            Proven,
        ),
        (
            "[  518.050606] Out of memory: Killed process 15784 (python3) total-vm:11964kB, anon-rss:4288kB, file-rss:3028kB, shmem-rss:0kB",
            HostOom,
            Proven,
        ),
        (
            "[39291577.009543] Memory cgroup out of memory: Killed process 19388 (node) total-vm:22353736kB, anon-rss:552020kB",
            CgroupOom,
            Proven,
        ),
    ]);
    let said = first("slurmstepd: error: Job 123 exceeded memory limit (10243748 > 10240000), being killed");
    assert_eq!((said.total, said.free), (Some(10240000 * KIB), Some(0)));
    let said = first("sending SIGTERM to process 63745 uid 1000 \"python3\": badness 748, VmRSS 538 MiB");
    assert_eq!(said.pid, Some(63745));
}

#[test]
fn shells() {
    check(&[
        ("Killed", Killed, Unknown),
        (
            "run.sh: line 7: 4242 Killed                  python train.py --epochs 3",
            Killed,
            Unknown,
        ),
        ("Segmentation fault (core dumped)", SegmentationFault, Proven),
        ("Illegal instruction (core dumped)", IllegalInstruction, Proven),
        ("Bus error (core dumped)", SharedMemory, Unknown),
        ("Aborted (core dumped)", Abort, Likely),
        ("Terminated", Stopped, Likely),
        ("bash: ./train.sh: Permission denied", Permission, Likely),
        ("bash: train.sh: No such file or directory", MissingFile, Likely),
        ("/bin/sh: 1: python: not found", MissingFile, Likely),
        ("bash: python: command not found", MissingFile, Likely),
        (
            "python: can't open file '/home/ada/train.py': [Errno 2] No such file or directory",
            MissingFile,
            Proven,
        ),
        ("/usr/bin/python3: No module named torch", LibraryVersion, Proven),
        ("free(): invalid pointer", Abort, Proven),
        ("double free or corruption (!prev)", Abort, Proven),
        ("malloc(): corrupted top size", Abort, Proven),
        ("corrupted size vs. prev_size", Abort, Proven),
        ("*** stack smashing detected ***: terminated", Abort, Proven),
        (
            "==29495==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55 bp 0x7f sp 0x7f",
            Abort,
            Proven,
        ),
        (
            "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x55 bp 0x7f sp 0x7f T0)",
            SegmentationFault,
            Proven,
        ),
        (
            "==1==ERROR: AddressSanitizer: stack-overflow on address 0x7ffc (pc 0x55 bp 0x7f sp 0x7f T0)",
            StackOverflow,
            Proven,
        ),
        (
            "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check",
            IndexError,
            Proven,
        ),
        ("terminate called without an active exception", Abort, Proven),
    ]);
}

#[test]
fn mistakes() {
    check(&[
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: operands could not be broadcast together with shapes (3,4) (5,4) ",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: Input 0 of layer \"dense_1\" is incompatible with the layer: expected axis -1 of input shape to have value 784, but received input with shape (None, 28, 28)",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: Input 0 of layer sequential is incompatible with the layer: : expected min_ndim=4, found ndim=3.",
            ShapeError,
            Proven,
        ),
        (
            "RuntimeError: The size of tensor a (10) must match the size of tensor b (12) at non-singleton dimension 1",
            ShapeError,
            Proven,
        ),
        (
            "RuntimeError: shape '[32, 10]' is invalid for input of size 640",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: cannot reshape array of size 12 into shape (5,5)",
            ShapeError,
            Proven,
        ),
        (
            "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 224, 224] to have 3 channels, but got 1 channels instead",
            ShapeError,
            Proven,
        ),
        (
            "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [3, 200, 224] at entry 1",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: Found input variables with inconsistent numbers of samples: [100, 99]",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: Feature shape mismatch, expected: 10, got 11",
            ShapeError,
            Proven,
        ),
        (
            "ValueError: X has 5 features, but StandardScaler is expecting 6 features as input.",
            ShapeError,
            Proven,
        ),
        (
            "RuntimeError: expected scalar type Float but found Double",
            TypeError,
            Proven,
        ),
        (
            "RuntimeError: Expected object of scalar type Float but got scalar type Double for argument #2 'weight'",
            TypeError,
            Proven,
        ),
        (
            "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half",
            TypeError,
            Proven,
        ),
        (
            "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
            TypeError,
            Proven,
        ),
        (
            "ValueError: could not convert string to float: 'male'",
            TypeError,
            Proven,
        ),
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            TypeError,
            Proven,
        ),
        (
            "TypeError: can't convert np.ndarray of type numpy.object_. The only supported types are: float64, float32",
            TypeError,
            Proven,
        ),
        ("IndexError: index out of range in self", IndexError, Proven),
        ("IndexError: Target 10 is out of bounds.", IndexError, Proven),
        (
            "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.",
            IndexError,
            Proven,
        ),
        (
            "/pytorch/aten/src/THC/THCTensorIndex.cu:307: void indexSelectSmallIndex(): block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            IndexError,
            Proven,
        ),
        (
            "../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [0,0,0], thread: [1,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"` failed.",
            IndexError,
            Proven,
        ),
        (
            "RuntimeError: CUDA error: device-side assert triggered",
            IndexError,
            Likely,
        ),
        (
            "RuntimeError: cuda runtime error (59) : device-side assert triggered at /pytorch/torch/lib/THC/generated/../THCReduceAll.cuh:339",
            IndexError,
            Likely,
        ),
        (
            "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /opt/x.so)",
            LibraryVersion,
            Proven,
        ),
        (
            "./train: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./train)",
            LibraryVersion,
            Proven,
        ),
        (
            "RuntimeError: cudaGetDeviceCount() failed: CUDA driver version is insufficient for CUDA runtime version",
            LibraryVersion,
            Proven,
        ),
        (
            "ImportError: /opt/torch/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
            LibraryVersion,
            Proven,
        ),
        (
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
            LibraryVersion,
            Proven,
        ),
        (
            "A module that was compiled using NumPy 1.x cannot be run in",
            LibraryVersion,
            Likely,
        ),
        (
            "ModuleNotFoundError: No module named 'lightgbm'",
            LibraryVersion,
            Proven,
        ),
        (
            "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.10/collections/__init__.py)",
            LibraryVersion,
            Likely,
        ),
        (
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
            LibraryVersion,
            Proven,
        ),
        (
            "./train: error while loading shared libraries: libgomp.so.1: cannot open shared object file: No such file or directory",
            LibraryVersion,
            Proven,
        ),
        (
            "ImportError: /lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block",
            LibraryVersion,
            Likely,
        ),
        (
            "AttributeError: module 'numpy' has no attribute 'float'.",
            LibraryVersion,
            Likely,
        ),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            LibraryVersion,
            Proven,
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            LibraryVersion,
            Proven,
        ),
        (
            "PermissionError: [Errno 13] Permission denied: '/data/out'",
            Permission,
            Proven,
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'",
            MissingFile,
            Proven,
        ),
        ("Batch 5: Invalid loss, terminating training", NotANumber, Proven),
        ("Loss is nan, stopping training", NotANumber, Proven),
        (
            "ERROR:tensorflow:Model diverged with loss = NaN.",
            NotANumber,
            Proven,
        ),
        (
            "Monitored metric val_loss = nan is not finite. Previous best value was 0.412. Signaling Trainer to stop.",
            NotANumber,
            Proven,
        ),
        (
            "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
            NotANumber,
            Proven,
        ),
        (
            "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
            NotANumber,
            Proven,
        ),
        ("Epoch 3/10 - loss: nan - accuracy: 0.0980", NotANumber, Likely),
    ]);
}

#[test]
fn a_loss_that_recovers_was_handled() {
    let found = said(&log(
        "step 1 loss 0.7\nstep 2 loss nan\nstep 3 loss 0.6\nstep 4 loss 0.5",
    ));
    assert!(found.iter().all(|said| said.handled), "{found:?}");
    let lasting: String = (1..60).map(|step| format!("step {step} loss nan\n")).collect();
    let found = said(&log(&lasting));
    assert_eq!(found.len(), 1);
    assert!(!found[0].handled);
    assert_eq!(found[0].number, 1);
}
