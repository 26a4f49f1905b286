//! A server that may compute and little else: it reads the system and what its operator names, writes into a folder of its own,
//! talks to nobody but us, and looks into no other process.
//!
//! On Linux such restrictions can only be laid on oneself, and whoever is started inherits them. So what we start is not the program
//! but ourselves once more, in a role ([`ARGUMENT`]) that gives up these rights and then becomes the program. `docs/sandbox.md`
//! says what this keeps out and what it does not.

#[cfg(target_os = "linux")]
mod confine;

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `program ARGUMENT` must read the arguments that [`Sandbox::arguments`] writes and call [`become_program`].
pub const ARGUMENT: &str = "__sandbox";

/// What a confined program may do beside computing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// Folders and files that it may read and run, beside those of the system.
    pub read: Vec<PathBuf>,
    /// Whether it may talk to other machines.
    pub network: bool,
}

impl Sandbox {
    /// What is said to ourselves in the role, before the program and its arguments.
    pub(crate) fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut all = vec![OsString::from(ARGUMENT), "--folder".into(), folder.into()];
        for path in &self.read {
            all.extend([OsStr::new("--read").to_owned(), path.into()]);
        }
        if self.network {
            all.push("--network".into());
        }
        all.push("--".into());
        all
    }
}

/// Whether this system can confine a program at all, and if not, why.
pub fn check(sandbox: &Sandbox) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    return confine::check(sandbox);
    #[cfg(not(target_os = "linux"))]
    Err(format!("only Linux can do that{}", if sandbox.network { "" } else { " so far" }))
}

/// Gives up all rights but those of the sandbox and becomes the program. Comes back only if that cannot be, with the reason.
pub fn become_program(sandbox: &Sandbox, folder: &Path, command: &[OsString]) -> String {
    #[cfg(target_os = "linux")]
    return confine::become_program(sandbox, folder, command);
    #[cfg(not(target_os = "linux"))]
    match check(sandbox) {
        Ok(()) => format!("{command:?} cannot run in {}", folder.display()),
        Err(why) => why,
    }
}

/// The folder that one confined process has to itself; gone with it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        let mut random = [0_u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("rialto-sandbox-{name}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left then is an empty promise of privacy at most, and the system clears its folder now and then.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
