//! The restrictions themselves: Landlock for files and TCP, a filter of system calls for the rest, limits for the machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::Sandbox;

/// What any program needs to run: itself, its libraries, names of hosts and users, the time zone. Nothing of it is secret, which
/// is why the rest of `/etc` is not here; nor is anything of other processes.
const SYSTEM: [&str; 33] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/sys/devices/system/cpu",
];

/// Devices without a memory.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Files are refused in every way that the third version of Landlock knows; older ones let a file be cut to nothing.
const FILES: ABI = ABI::V3;
/// TCP is refused from the fourth version on.
const NETWORK: ABI = ABI::V4;
/// Signals to others, and sockets without a place in a folder, are refused where the kernel can (6.12).
const OTHERS: ABI = ABI::V6;

/// A file that is longer fills a disk.
const LONGEST_FILE: u64 = 1 << 30;

/// Processes and threads that the user may have beside those of now. A runtime with many threads has fifty.
const MORE_PROCESSES: u64 = 256;

/// System calls that look into other processes, change the system, or are a way around this filter.
const FORBIDDEN: [i64; 32] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_settimeofday,
    libc::SYS_quotactl,
];

/// Sockets that lead to other programs of this machine, or past its network; for a program that may use the network.
const LOCAL_SOCKETS: [i32; 3] = [libc::AF_UNIX, libc::AF_PACKET, libc::AF_VSOCK];

pub(super) fn check(sandbox: &Sandbox) -> Result<(), String> {
    ruleset(sandbox).and_then(Ruleset::create).map(drop).map_err(|error| unsupported(&error))?;
    filter(sandbox).map(drop).map_err(|error| format!("system calls cannot be filtered here: {error}"))
}

fn unsupported(error: &RulesetError) -> String {
    format!("this kernel cannot confine programs; that takes Landlock as Linux 6.7 has it ({error})")
}

fn ruleset(sandbox: &Sandbox) -> Result<Ruleset, RulesetError> {
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(FILES))?;
    if !sandbox.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NETWORK))?;
    }
    let ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    ruleset.handle_access(AccessFs::IoctlDev)?.scope(Scope::from_all(OTHERS))
}

pub(super) fn become_program(sandbox: &Sandbox, folder: &Path, command: &[OsString]) -> String {
    let Some((program, arguments)) = command.split_first() else { return "there is no program to run".to_owned() };
    let Some(path) = find(program) else { return format!("`{}` is not there", Path::new(program).display()) };
    if let Some(absent) = sandbox.read.iter().find(|path| !path.exists()) {
        return format!("`{}`, which it may read, is not there", absent.display());
    }
    let confined =
        limit().and_then(|()| restrict(sandbox, folder, &path).map_err(|error| unsupported(&error))).and_then(|()| {
            let filter = filter(sandbox)?;
            apply_filter(&filter).map_err(|error| error.to_string())
        });
    if let Err(why) = confined {
        return why;
    }
    let error = Command::new(&path).arg0(program).args(arguments).exec();
    format!("`{}` cannot be run: {error}", path.display())
}

/// Where a program is, as a shell would look for it.
fn find(program: &OsString) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file())
}

fn restrict(sandbox: &Sandbox, folder: &Path, program: &Path) -> Result<(), RulesetError> {
    let reading = AccessFs::from_read(FILES);
    let status = ruleset(sandbox)?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, reading))?
        .add_rules(path_beneath_rules([program], reading))?
        .add_rules(path_beneath_rules(&sandbox.read, reading))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules([folder], AccessFs::from_all(FILES)))?
        // This also forbids all ways to more rights, such as programs that run as somebody else.
        .restrict_self()?;
    debug_assert_ne!(status.ruleset, RulesetStatus::NotEnforced, "all that must hold is a hard requirement");
    Ok(())
}

fn filter(sandbox: &Sandbox) -> Result<BpfProgram, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in FORBIDDEN {
        rules.insert(call, Vec::new());
    }
    rules.insert(libc::SYS_socket, sockets(sandbox).map_err(|error| error.to_string())?);
    // The same calls have second numbers there, for programs with short pointers.
    #[cfg(target_arch = "x86_64")]
    for (call, conditions) in rules.clone() {
        rules.insert(call | 0x4000_0000, conditions);
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture =
        std::env::consts::ARCH.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture);
    filter.and_then(TryInto::try_into).map_err(|error| error.to_string())
}

/// Which sockets are refused; without conditions all of them.
fn sockets(sandbox: &Sandbox) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    if !sandbox.network {
        return Ok(Vec::new());
    }
    let refused = LOCAL_SOCKETS.iter().map(|family| {
        let family = u64::from(family.unsigned_abs());
        let is_family = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family)?;
        SeccompRule::new(vec![is_family])
    });
    refused.collect()
}

/// Limits what a program can take of the machine. The one of processes counts all of the user, and holds for everybody but root.
fn limit() -> Result<(), String> {
    let processes = own_threads() + MORE_PROCESSES;
    for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, LONGEST_FILE), (Resource::Nproc, processes)] {
        let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("the limits of the program cannot be set: {error}"))?;
    }
    Ok(())
}

/// How many threads the user has now.
fn own_threads() -> u64 {
    let own = rustix::process::getuid().as_raw().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let statuses = processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()).map(str::to_owned)
    };
    statuses
        .filter(|status| field(status, "Uid:").is_some_and(|user| user == own))
        .filter_map(|status| field(&status, "Threads:")?.parse::<u64>().ok())
        .sum()
}
