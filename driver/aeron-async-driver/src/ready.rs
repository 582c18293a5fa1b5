//! What the program says of itself.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process;

use rusteron_media_driver::bindings::{aeron_version_major, aeron_version_minor, aeron_version_patch};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn aeron_version() -> String {
    // SAFETY: each returns a constant.
    let (major, minor, patch) = unsafe { (aeron_version_major(), aeron_version_minor(), aeron_version_patch()) };
    format!("{major}.{minor}.{patch}")
}

pub fn version_line() -> String {
    format!(
        "aeron-async-driver {VERSION} ({}, Aeron {})",
        env!("MEDIA_DRIVER_CRATE"),
        aeron_version()
    )
}

/// Says that the driver is ready, on `file` or else on standard output. That nobody listens any more is no failure.
pub fn announce(file: Option<File>, dir: &Path) {
    let line = ready_line(process::id(), dir);
    let _ = match file {
        Some(mut file) => file.write_all(line.as_bytes()),
        None => io::stdout().write_all(line.as_bytes()),
    };
}

fn ready_line(pid: u32, dir: &Path) -> String {
    format!(
        "{{\"pid\":{pid},\"aeron_dir\":{},\"version\":\"{VERSION}\",\"aeron_version\":\"{}\"}}\n",
        json_string(&dir.to_string_lossy()),
        aeron_version()
    )
}

fn json_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted += &format!("\\u{:04x}", u32::from(character)),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_all_three() {
        let line = version_line();
        assert!(
            line.starts_with(&format!("aeron-async-driver {VERSION} (rusteron-media-driver ")),
            "{line}"
        );
        assert!(line.ends_with("Aeron 1.54.0)"), "{line}");
    }

    #[test]
    fn the_ready_line_is_one_line_whatever_the_directory() {
        let line = ready_line(7, Path::new("/a \"b\"\\\n"));
        assert!(
            line.starts_with(r#"{"pid":7,"aeron_dir":"/a \"b\"\\\u000a","version":""#),
            "{line}"
        );
        assert_eq!(line.matches('\n').count(), 1);
    }
}
