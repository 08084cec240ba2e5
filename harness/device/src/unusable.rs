//! Finds driver files whose library cannot be loaded.
//!
//! The Vulkan loader skips them silently, and a GPU is missing from the list. On servers and in containers,
//! the usual cause is a missing library that the driver needs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A driver file that the loader finds but cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("driver file {}: {reason}", file.display())]
pub struct UnusableDriver {
    pub file: PathBuf,
    pub reason: String,
}

/// The used part of a driver file (Vulkan loader, "Driver Manifest File Format").
#[derive(Deserialize)]
struct DriverManifest {
    #[serde(rename = "ICD")]
    driver: ManifestDriver,
}

#[derive(Deserialize)]
struct ManifestDriver {
    library_path: String,
    /// `32` or `64`, if present.
    library_arch: Option<String>,
}

/// Returns those of `files` that the loader cannot use, with the reason.
///
/// Libraries of another word size are for other programs and are skipped. This loads the drivers' libraries
/// into the process, so a dedicated process should call it.
pub fn find_unusable(files: &[PathBuf]) -> Vec<UnusableDriver> {
    let check = |file: &PathBuf| {
        let reason = check_driver_file(file).err()?;
        Some(UnusableDriver { file: file.clone(), reason })
    };
    files.iter().filter_map(check).collect()
}

fn check_driver_file(file: &Path) -> Result<(), String> {
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let manifest: DriverManifest = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let ManifestDriver { library_path, library_arch } = manifest.driver;
    if library_arch.is_some_and(|bits| bits != usize::BITS.to_string()) {
        return Ok(());
    }
    // The system searches for a bare name; a path is relative to the driver file.
    let library = match file.parent() {
        Some(folder) if library_path.contains('/') => folder.join(&library_path),
        _ => PathBuf::from(&library_path),
    };
    // SAFETY: the loader has just loaded the same library, or failed to; its initialization has no
    // preconditions.
    match unsafe { libloading::Library::new(&library) } {
        Ok(loaded) => {
            // Driver threads may still execute its code.
            std::mem::forget(loaded);
            Ok(())
        }
        Err(error) if error.to_string().contains("wrong ELF class") => Ok(()),
        Err(error) => Err(format!("its library cannot be loaded: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reason for a driver file with this text.
    fn reason(text: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gpu_icd.json");
        std::fs::write(&file, text).unwrap();
        let found = find_unusable(std::slice::from_ref(&file));
        assert!(found.iter().all(|driver| driver.file == file));
        found.into_iter().next().map(|driver| driver.reason)
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let text = r#"{"file_format_version": "1.0.1", "ICD": {"library_path": "libno_such_gpu.so.0", "api_version": "1.4"}}"#;
        let reason = reason(text).unwrap();
        assert!(reason.starts_with("its library cannot be loaded: libno_such_gpu.so.0"), "{reason}");
    }

    #[test]
    fn a_path_is_relative_to_the_driver_file() {
        let reason = reason(r#"{"ICD": {"library_path": "./libgpu.so"}}"#).unwrap();
        assert!(reason.contains("/./libgpu.so"), "{reason}");
    }

    #[test]
    fn libraries_of_other_programs_are_ignored() {
        let other = if usize::BITS == 64 { "32" } else { "64" };
        let text =
            format!(r#"{{"ICD": {{"library_path": "libno_such_gpu.so.0", "library_arch": "{other}"}}}}"#);
        assert_eq!(reason(&text), None);
    }

    #[test]
    fn a_broken_file_is_reported_with_its_position() {
        assert!(reason("{\"ICD\":\n 7}").unwrap().contains("line 2"));
        let missing = find_unusable(&[PathBuf::from("no/such/file.json")]);
        assert!(
            missing[0].to_string().starts_with("driver file no/such/file.json: No such file"),
            "{missing:?}"
        );
    }
}
