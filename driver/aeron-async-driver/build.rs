//! Hands the version of the media driver's crate to the program, which names it in `--version`.

use std::{env, fs, path::Path};

const CRATE: &str = "rusteron-media-driver";

fn main() {
    let lock = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock).expect("the workspace has a lock file");
    let version = lock
        .split("[[package]]")
        .find(|package| package.contains(&format!("name = \"{CRATE}\"\n")))
        .and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
        .expect("the lock file names the crate");
    println!(
        "cargo:rustc-env=MEDIA_DRIVER_CRATE={CRATE} {}",
        version.trim_matches('"')
    );
}
