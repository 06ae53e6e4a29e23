"""The phrases by which lines name things and troubles, where no row knows the line.

Phrases stand between commas; the endings of words do not count, and names in code are taken apart
(`NoSuchBucket` is `no such bucket`).
"""

from __future__ import annotations

from collections.abc import Mapping

THINGS: Mapping[str, str] = {
    "gpu": "gpu, gpus, dram buffer, tensix, tt metal, habana, gaudi, syn status, ascend, neuron core, neuroncore, cuda, nvidia, nvrm, nvml, hip, rocm, amdgpu, npu, xpu, hpu, tpu, hbm, cudnn, cublas, accelerator, vram",
    "driver": "driver, drivers, kernel module, ptx, toolchain, compute capability, nvidia smi, device count, cu init, kernel image,"
    " container cli, not compiled with, libcuda, runtime version, no device, device unavailable, api mismatch, client has the version",
    "ecc": "ecc, row remap, row remapper, row remapping, double bit, dbe, sram, remapped row",
    "nvlink": "nvlink, nvswitch, nv link, nv switch, fabric manager, fabricmanager, sxid, xgmi, rlw, netir",
    "memory": "memory, mem, heap, hbm, vram, swap, bad alloc, oom, allocating tensor, malloc, mmap, rss",
    "shared memory": "shm, shared memory, semaphore, sem lock, semlock, shm open, plasma",
    "disk": "disk, quota, space left, inode, file system, filesystem, volume, scratch, errno 28, errno 122, enospc, edquot",
    "limit": "too many open file, readers full, reader table, table full, open file limit, file descriptor, new thread, create thread, thread creation, process limit, pid limit, max pid, nproc, memlock, locked memory, ulimit, inotify,"
    " ancdata, rlimit, file handle, lock available, reg mr, watch limit",
    "checkpoint": "checkpoint, checkpointing, ckpt, distcp, state dict, safetensor, safetensors, orbax, optimizer state,"
    " restore item, snapshot, shard state, pytorch stream, unpickling, torch load, zip archive, resume, central directory, weights only",
    "reading": "restor, restoring, restore, load, loading, resume, resuming",
    "saving": "save, saving, saver, write, writing, writer, upload, persist, flush, store checkpoint",
    "sample": "sample, dataset, data set, shard, image, video, audio, jpeg, png, parquet, arrow, csv, json, tfrecord, webdataset,"
    " snappy, gzip, zlib, zstd, lz, codec, data record, tokeniz, corpus, pil, decord, ffmpeg, av error, clip, compressed file, pickle data,"
    " stream marker, archive, lmdb, mdb, hdf 5, h 5 py, zarr, database page, index file, unicode, avro, hdf, wav, mp 4, mp 3, video frame, tokenizing data, decoding data",
    "loader": "data loader, dataloader, loader worker, prefetch, prefetcher, pin memory, loader thread, data worker, data pipeline,"
    " background worker, reader process, input pipeline",
    "object store": "s 3, gs, gcs, gsutil, bucket, blob, boto, botocore, boto 3, aws error, azure, abfs, abfss, hdfs, minio,"
    " object store, google auth, fsspec, upload part, get object, put object, head object, s 3 fs, oss, cos, swift, wasb",
    "service": "internal server, http, https, api request, api error, api server, api exception, api call, grpc, rpc, redis, sqlalchemy, psycopg, postgre, postgres, mysql, database, hub, wandb, mlflow, etcd,"
    " etcdserver, kafka, license, licens, kubernete, consul, zookeeper, slurm controller, slurmctld controller, tracking server, gateway,"
    " proxy, ldap, vault, metadata server, registry, clearml, comet, neptune, control plane, name server, dns",
    "collective": "culprit rank, flight recorder, all reduce, allreduce, all gather, allgather, reduce scatter, all to all, alltoall, broadcast, barrier, collective,"
    " nccl, gloo, rccl, hccl, mpi, ucc, oneccl, process group, recv operation, send operation, monitored barrier, all reduce participant,"
    " horovod, communicator, process group nccl, sync global device",
    "meeting": "rendezvous, rdzv, client joined, clients joined, master addr, master port, init process group, coordinator, bootstrap,"
    " unique id, tcp store, dist store, store barrier, client connect, initialize distributed, join the job, cluster formation, start daemon,"
    " head node, connect to host, worker registration, resolve host, hostname, dist init",
    "peer": "peer, remote process, remote rank, another rank, other rank, actor, remote host, remote end, replica, neighbour,"
    " raylet, remote task, remote worker, remote daemon",
    "node": "node, nodes, host, machine, instance, vm, hypervisor, server blade, gpu node",
    "network": "link status, interface, nic, infiniband, ibv, ib, net ib, efa, mlx, roce, libfabric, ucx, network, rdma, bond, route, socket"
    " interface, qp, queue pair, work completion, ethernet, port error, link down, link flap, ofi, net ofi, net socket, packet, errno 110,"
    " errno 113, errno 101, srd",
    "port": "port, address, addr, eaddrinuse, errno 98",
    "number": "nan, inf, infinite, non finite, not finite, nonfinite, overflow, diverg, infs, nans, infinity, floating point",
    "loss": "loss, grad, gradient, backward, logit, activation, norm, weight, parameter, loss scale, backward 0, output",
    "compiler": "compile, compiler, compilation, inductor, dynamo, triton, ptxas, nvcc, gcc, clang, ld, linker, lowering, llvm,"
    " mlir, nvrtc, hipcc, cxx, xla compilation, ninja, cutlass, aot autograd, graph break, ptx asm, cpp extension",
    "module": "failed to execute, container start, start container, enroot, no module, module not found, import error, cannot import, failed to import, import name, package, distribution not found, distribution was not, library, symbol, executable, command not, image, manifest, exec format, interpreter,"
    " shared object, wheel, pip, conda, container image, dll, cxxabi, glibc, glibcxx, abi, torchvision, version of,"
    " op library, importing, entry point, docker, execve, pull access, pull image, image pull, numpy, can t open file",
    "setting": "config, configuration, unrecognized argument, command line argument, option, setting, yaml, toml, hydra, omegaconf, pydantic, validation,"
    " world size, parallel size, override, planner, hyperparameter, flag, tensor parallel, pipeline parallel, num head, plan,"
    " attn implementation, batch related, device ordinal, partition, qos, account, schema, env var, environment variable, divisible,"
    " divide, multiple of, micro batch, sharding plan, cli, argparse, parser key, parallelism, num gpu",
    "file": "file, directory, structure, path, mount, nfs, lustre, gpfs, beegfs, fuse, nvme, sd a, block device, read, ext 4, xfs, disk read, i o,"
    " io, mnt, file handle, endpoint, device",
    "time given": "time limit, timelimit, wall time, walltime, wall clock, wallclock, run limit, runlimit, runtime limit, max runtime,"
    " max run time, h rt, s rt, job time, attempt duration, active deadline, job duration, allocated time, time allocation,"
    " run time limit, max duration, time quota, requested time, runtime in second",
    "user": "at request of, job deleted, by user, by owner, by admin, by administrator, owner, kill job, request kill job, scancel, ctrl c, keyboard interrupt,"
    " user request, user cancelled, by the operator, manually, qdel, bkill, stop by, sigint",
    "job": "job, task, training, step, run, pod, container, worker, program, workload, trial, actor, attempt",
    "crash": "segfault, segmentation, sigsegv, stack smash, double free, free invalid, sysmalloc, general protection, invalid pointer, bus error,"
    " invalid opcode, illegal instruction, heap corruption, sigabrt, sigbus, sigill, access violation, pure virtual",
    "machine fault": "soft lockup, hard lockup, kernel panic, machine check, kernel bug, mce, node fail, nodefail, rcu stall, rcu detected",
    "connecting": "connect, connecting, connection attempt",
    "stop": "received sigterm, got sigterm, caught sigterm, by sigterm, signal 15, got signal, cancelled at, sighup, signal exception, received signal, caught signal, death signal",
    "launcher": "non zero status, non zero exit, exit code, exitcode, exited with, exit status, returned non zero",
    "supposed": "press, if, whether, when, unless, checking, handler, would, enabled, installed, listening, watching, policy, set to, configured,"
    " started, starting, registered, may, might, for more information, see also, how to, retry, retries, using, default, will be used",
    "harmless": "non fatal, nonfatal, corrected, no error, 0 error, without error, recovered, success, successful, successfully, ok, ready,"
    " has no, sufficient, healthy, restored, passed, complete, completed, finished, resolved, up to date, no longer needed, normal, none,"
    " no job, 0 job, preemption 0, warning only, ignored, ignoring, skipped, skipping",
}
"""Things, and the phrases that name each."""

TROUBLES: Mapping[str, str] = {
    "used up": "gone over, over memory limit, over the memory limit, out of memory, out of hbm, out of vram, oom, out of disk, out of space, exhaust, exhausted, exceed, exceeded, exceeds, insufficient, not enough, full,"
    " limit reached, reached the limit, running low, ran out, run out, too many, too large, cannot allocate, unable to allocate, bad alloc,"
    " can t allocate, allocate, alloc, low on, no space, over limit, above, too low, too small, starved, pressure, memory used, used memory,"
    " memory usage, failed to allocate, could not allocate, no more",
    "reached": "reached, reach, exceed, exceeded, exceeds, expired, expire, hit the, time is up, is over, limit, timeout, ran out",
    "killed": "kill, killed, killing, terminate, terminated, oom kill, sigkill, reaped",
    "damaged": "corrupt, corrupted, wrong type, page not found, truncated, truncate, damaged, incomplete, malformed, garbled, bad magic, magic number, magic byte, crc, error tokenizing, generation error, failed to seek, decord error,"
    " checksum, checksum mismatch, invalid header, header too large, unexpected end, ended before, premature, decode, decoding,"
    " deserialize, deserializ, unpickl, data loss, not a zip, not an sstable, bad zip, invalid data, broken data, eof, expecting value,"
    " invalid start byte, invalid magic, unexpected eof, not a gzip, hash mismatch, incorrect header, cannot identify, could not read frame,"
    " metadata incomplete, not a valid, short read, partial, torn, missing commit, unreadable, zero length, bad block, parse, commit marker,"
    " incorrect length",
    "unlike": "mismatch, mismatched, tree structure, dp world size, does not match, do not match, not match, incompatible, missing value, missing key, unexpected key,"
    " differ, different, shape, but got, but the current, but expected, older version, instead of, unlike, not equal, is not equal,"
    " saved with, trained with, not the same, cannot be load, wrong shape, size mismatch, changed, unexpected",
    "absent": "missing, not found, no such, cannot find, can t find, could not find, unable to find, does not exist, not exist, unknown,"
    " absent, no module, not installed, unable to locate, cannot open, can t open, cannot import, failed to import, denied, undefined,"
    " not available, no working, failed to find, unsupported, cannot be imported, unavailable library, unresolved, no attribute, missing",
    "unreachable": "timed out, etcd key not found, time out, timeout, unavailable, refused, unreachable, unable to contact, cannot connect, can t connect,"
    " could not connect, failed to connect, unable to connect, not reachable, connect failure, connection error, connection failed,"
    " connection reset, connection aborted, bad gateway, service unavailable, gateway timeout, no route, not reach, deadline exceeded,"
    " 502, 503, 504, 500, 429, max retries, too many requests, throttl, rate limit, slow down, could not be reached, could not reach,"
    " cannot reach, curl, server error, internal error, name resolution, not resolve, cannot resolve, not known, no leader, disconnected,"
    " connection pool, incomplete read, operational error, unauthorized, forbidden, permission denied, credential, expired, not authorized,"
    " could not obtain, access denied, location error, failed to locate, locate the file, busy, overloaded, connection closed",
    "late": "timed out, time out, timeout, failed to pass, did not arrive, waiting for, waited, deadline exceeded, too long, longer than,"
    " stalled, not respond, stuck, straggl, lagging, never arrive, not yet arrive",
    "gone": "closed, reset, error code, async error, remote error, lost communication, transport is closing, died, dead, dying, die, lost, abort, aborted, left, disconnect, disconnected, broken pipe, vanished, exited,"
    " went away, unexpectedly, disappeared, no longer alive, no longer reachable, crash, crashed, hung up, prematurely, shut down, keep alive,"
    " heartbeat, terminated, not connected",
    "down": "down, not respond, not responding, dead, died, dying, lost, fail, failed, failure, reboot, rebooted, panic, lockup, soft lockup,"
    " unresponsive, unhealthy, heartbeat, powered off, power loss, stopped posting, unreachable, crash, crashed, not ready, notready,"
    " differs from hardware, machine check, ip address changed, out of service, kernel panic, offline",
    "failed": "fail, failed, failure, error, err, fatal, compromised, unable, cannot, could not, can t, not, broken, exception, bad, wrong, invalid, unexpected,"
    " unsuccessful, refus, reject, rejected, abort, aborting, did not, denied, disabling, without any, gave up, giving up, down, unreachable",
    "invalid": "invalid, missing, unknown, unrecognized, unexpected, must, required, not allowed, not supported, unsupported, mismatch,"
    " not equal, does not divide, not divisible, divisible, multiple of, validation, duplicate, mutually exclusive, out of range,"
    " should be, expected, unable to find a plan, cannot use, no such option, conflict, ambiguous, illegal value, scanner, parser,"
    " misconfigur, bad value, cannot be, not one of, not permitted, exceeds, not specified, exception, error, failed",
    "in use": "in use, already in use, already use, utilizing, already allocated, already bound, occupied, bind, eaddrinuse, taken",
    "busy": "busy, already acquired, acquire failed, already open, device acquire, in use by another, held by another, exclusive, unavailable",
    "hardware": "hang, hung, unhealthy, thermal, overheat, power brake, power cable, hw exception, hardware, reset required, gpu reset, watchdog,"
    " firmware, gsp, stopped process, thermal slowdown, rma, pcie bus error, initialization failure, recovery action",
    "off the bus": "off the bus, is lost, gpu lost, device lost, init adapter fail, adapter failed, adapter fail, from bus, unable to determine the"
    " device handle, lost connection to gpu, gpu is lost, not detected, disappeared, gpu lost, be lost",
    "io trouble": "lock file, file lock, file locking, flock, input output error, i o error, io error, stale, read only, structure need cleaning, need cleaning, not connected, bad file descriptor, host is down, controller is down, errno 5, errno 6, errno 19, errno 30, errno 71, errno 74, errno 107, errno 116, errno 117, errno 121, failed to mount, mount failed, unmounted, disk failure, medium error, remounting, shut down file, mount volume, failed mount",
    "unread": "could not load, cannot load, can t load, unable to load, failed to load, could not read, cannot read, can t read, unable to read, failed to read, could not open,"
    " error reading, error loading",
    "denied": "permission denied, operation not permitted, not writable, errno 13, errno 1",
    "no file": "no such file, file not found, not found error, cannot find the file, does not exist, could not find, errno 2",
    "misuse": "illegal, misaligned, out of bound, access fault, assert, device side, launch failed, illegal address, page fault, mmu fault,"
    " execution failed, unspecified launch, not supported, internal error, memory fault, sq intr, warp, kernel error, invalid value,"
    " out of range, unknown error, page not present",
    "uncorrected": "uncorrect, uncorrectable, unrecover, unrecovered, fail, failed, failure, error, pending, uncontained, contained, fatal,"
    " non recoverable, hardware error",
    "preempted": "preempt, preempted, preemption, preempting, spot interrupt, spot terminat, termination notice, terminate notice, reclaim,"
    " reclaimed, higher priority, instance action, spot instance, capacity reclaim, requeue for higher, instance preempted",
    "evicted": "evict, evicted, eviction, evicting, taint, taint manager, disruption target, node pressure, disk pressure, memory pressure",
    "maintenance": "maintenance, drain, draining, drained, cordon, cordoned, node shutdown, decommission, planned outage, host event",
    "stuck": "stuck, hang, hanging, hung, no progress, blocked for more, stalled, not making progress, taking a long time, deadlock, frozen,"
    " may be stuck",
    "crashed": "core dumped, segfault, smashing, detected, invalid, corrupt, corrupted, double free, trap, received, error, fault, failed, caught",
}
"""Troubles, and the phrases that name each."""
