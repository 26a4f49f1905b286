//! Installs the peers from their registries, on demand, into a cache outside of the tree.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{Failure, subject::peers};

/// Where the glue of the peers lies in the tree.
fn glue(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// Copies what changed, so that neither cargo nor npm does again what is done.
fn copy(name: &str, files: &[&str]) -> Result<PathBuf, Failure> {
    let folder = peers().join(name);
    for file in files {
        let (from, to) = (glue(name).join(file), folder.join(file));
        let text = fs::read(from)?;
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(&folder))?;
            fs::write(to, text)?;
        }
    }
    Ok(folder)
}

fn succeed(what: &str, output: std::io::Result<Output>) -> Result<(), Failure> {
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    Err(format!("{what}: {last}").into())
}

/// ContextVM's TypeScript SDK; returns the gateway's script.
pub fn node() -> Result<PathBuf, Failure> {
    let folder = copy("contextvm-node", &["package.json", "package-lock.json", "gateway.mjs"])?;
    let (lock, installed) = (folder.join("package-lock.json"), folder.join("node_modules/.installed-lock"));
    let wanted = fs::read(&lock)?;
    if fs::read(&installed).ok().as_ref() != Some(&wanted) {
        eprintln!("installing @contextvm/sdk from npm");
        let npm = Command::new("npm")
            .args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&folder)
            .output();
        succeed("npm install", npm)?;
        fs::write(installed, wanted)?;
    }
    Ok(folder.join("gateway.mjs"))
}

/// ContextVM's Rust SDK; returns the binary.
pub fn rust() -> Result<PathBuf, Failure> {
    let folder = copy("contextvm-rust", &["Cargo.toml", "Cargo.lock", "src/main.rs"])?;
    let target = folder.join("target");
    eprintln!("building contextvm-sdk from crates.io");
    let cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
        .arg(&target)
        .current_dir(&folder)
        .output();
    succeed("cargo build", cargo)?;
    Ok(target.join("release/rialto-contextvm-peer"))
}
