//! Paths in files: a test or model of another author must not open files outside its folder.

use std::path::{Path, PathBuf};

/// Returns the path of `name` in `folder`. Links and `..` are followed first.
///
/// # Errors
/// If the file does not exist, or if it is outside the folder.
pub fn path_inside(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(name);
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    if real(&path)?.starts_with(real(folder)?) {
        return Ok(path);
    }
    Err(format!("it is outside the folder {}: copy it there", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_a_folder_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tests");
        std::fs::create_dir_all(folder.join("parts")).unwrap();
        for file in ["tests/a.bin", "tests/parts/b.bin", "secret"] {
            std::fs::write(root.path().join(file), "x").unwrap();
        }
        for inside in ["a.bin", "parts/b.bin", "parts/../a.bin", "../tests/a.bin"] {
            assert_eq!(path_inside(&folder, inside), Ok(folder.join(inside)));
        }
        let absolute = root.path().join("secret").display().to_string();
        for outside in ["../secret", "parts/../../secret", &absolute] {
            let why = path_inside(&folder, outside).unwrap_err();
            assert!(why.contains("outside the folder"), "{outside}: {why}");
        }
        assert!(path_inside(&folder, "none").is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
            assert!(path_inside(&folder, "link").is_err());
        }
    }
}
