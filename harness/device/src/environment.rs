//! Vulkan driver files, and the environment variables through which the Vulkan loader finds them.
//!
//! The loader reads `VK_DRIVER_FILES` (older ones: `VK_ICD_FILENAMES`) when an instance is created, and a
//! program with threads cannot safely change its own environment. So the variables are set when a process
//! starts: a parent passes [`DriverEnvironment::loader_variables`] to its workers.
//!
//! The loader finds the drivers of the distribution. This module adds SwiftShader, which Chromium contains,
//! and the files in `VK_LITMUS_EXTRA_ICDS`. The variables replace the search of the loader, so they also list
//! the files that this search would find.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::select::{Selector, SoftwareDriver};

/// Names SwiftShader's driver file if it is not in a usual place.
pub const SWIFTSHADER_VARIABLE: &str = "VK_LITMUS_SWIFTSHADER_ICD";
/// Lists additional driver files, separated as in `PATH`.
pub const EXTRA_VARIABLE: &str = "VK_LITMUS_EXTRA_ICDS";
/// The loader's variables that replace its search, in order of preference.
const LOADER_VARIABLES: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
/// The loader's variable that extends its search, unless one of the others is set.
const LOADER_ADDITION: &str = "VK_ADD_DRIVER_FILES";

/// SwiftShader files in browsers, which the loader does not find.
const SWIFTSHADER_FILES: [&str; 5] = [
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/usr/lib64/chromium-browser/vk_swiftshader_icd.json",
    "/usr/lib/chromium-browser/vk_swiftshader_icd.json",
    "/opt/google/chrome/vk_swiftshader_icd.json",
    "/snap/chromium/current/usr/lib/chromium-browser/vk_swiftshader_icd.json",
];

/// The driver files that the loader is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverEnvironment {
    files: Vec<PathBuf>,
    /// True if the loader's search would find other files, so that the variables must be set.
    must_set_variables: bool,
}

/// A variable names a driver file that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} names `{}`, which is not a file", path.display())]
pub struct EnvironmentError {
    pub variable: &'static str,
    pub path: PathBuf,
}

impl DriverEnvironment {
    /// Finds the driver files by this process's environment and the usual folders.
    ///
    /// If the user has set `VK_DRIVER_FILES` or `VK_ICD_FILENAMES`, nothing is added.
    ///
    /// # Errors
    ///
    /// If `VK_LITMUS_SWIFTSHADER_ICD` or `VK_LITMUS_EXTRA_ICDS` names a file that does not exist.
    pub fn discover() -> Result<DriverEnvironment, EnvironmentError> {
        let swiftshader = SWIFTSHADER_FILES.map(PathBuf::from);
        discover_from(&|name| env::var_os(name).filter(|value| !value.is_empty()), &swiftshader)
    }

    /// Returns the driver files in the loader's order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns true if a file of a software driver is among them, by its name.
    pub fn has_driver(&self, driver: SoftwareDriver) -> bool {
        self.files.iter().any(|file| software_driver_of(file) == Some(driver))
    }

    /// Restricts the files to those of selected drivers, because probing drivers without a device costs time.
    ///
    /// Only if every selector names a software driver whose file is recognized by name; otherwise nothing
    /// changes.
    pub fn restrict_to(&self, selectors: &[Selector]) -> DriverEnvironment {
        let mut wanted = Vec::new();
        for selector in selectors {
            let files = selector
                .software_driver()
                .map(|driver| self.files.iter().filter(move |file| software_driver_of(file) == Some(driver)));
            let Some(files) = files else { return self.clone() };
            let before = wanted.len();
            wanted.extend(files.cloned());
            if wanted.len() == before {
                return self.clone();
            }
        }
        let mut files = self.files.clone();
        files.retain(|file| wanted.contains(file));
        let must_set_variables = self.must_set_variables || files != self.files;
        if files.is_empty() { self.clone() } else { DriverEnvironment { files, must_set_variables } }
    }

    /// Returns the variables for a process that uses these drivers; empty if the loader finds them itself.
    pub fn loader_variables(&self) -> Vec<(&'static str, OsString)> {
        if !self.must_set_variables {
            return Vec::new();
        }
        let mut list = OsString::new();
        for file in &self.files {
            if !list.is_empty() {
                list.push(list_separator());
            }
            list.push(file);
        }
        LOADER_VARIABLES.map(|name| (name, list.clone())).to_vec()
    }

    /// Returns true if this process's environment already has the values of [`Self::loader_variables`].
    pub fn is_applied(&self) -> bool {
        self.loader_variables().into_iter().all(|(name, value)| env::var_os(name) == Some(value))
    }
}

fn discover_from(
    variable: &dyn Fn(&str) -> Option<OsString>,
    swiftshader: &[PathBuf],
) -> Result<DriverEnvironment, EnvironmentError> {
    if let Some(chosen) = LOADER_VARIABLES.iter().find_map(|name| variable(name)) {
        let files = expand_list(&chosen);
        return Ok(DriverEnvironment { files, must_set_variables: false });
    }
    let mut added = Vec::new();
    if let Some(named) = variable(SWIFTSHADER_VARIABLE) {
        added.push(require_file(SWIFTSHADER_VARIABLE, PathBuf::from(named))?);
    } else {
        added.extend(swiftshader.iter().find(|file| file.is_file()).cloned());
    }
    for path in variable(EXTRA_VARIABLE).iter().flat_map(env::split_paths) {
        if !path.as_os_str().is_empty() {
            added.push(require_file(EXTRA_VARIABLE, path)?);
        }
    }
    let mut files: Vec<PathBuf> =
        variable(LOADER_ADDITION).iter().flat_map(|value| expand_list(value)).collect();
    for folder in search_folders(variable) {
        files.extend(driver_files(&folder.join("vulkan/icd.d")));
    }
    let mut environment = DriverEnvironment::default();
    for file in files {
        environment.add_file(file);
    }
    let found_by_loader = environment.files.len();
    for file in added {
        environment.add_file(file);
    }
    environment.must_set_variables = environment.files.len() > found_by_loader;
    Ok(environment)
}

impl DriverEnvironment {
    /// Adds a file unless it is already present (by canonical path) or its name contains a separator.
    fn add_file(&mut self, file: PathBuf) {
        let same = |a: &Path, b: &Path| {
            a == b || a.canonicalize().ok().is_some_and(|a| b.canonicalize().ok() == Some(a))
        };
        if env::join_paths([&file]).is_err() {
            tracing::warn!(file = %file.display(), "driver file omitted: its name contains a separator");
        } else if !self.files.iter().any(|known| same(known, &file)) {
            self.files.push(file);
        }
    }
}

fn require_file(variable: &'static str, path: PathBuf) -> Result<PathBuf, EnvironmentError> {
    if path.is_file() { Ok(path) } else { Err(EnvironmentError { variable, path }) }
}

/// Returns the files of a list in the loader's syntax, which may contain folders.
fn expand_list(list: &OsStr) -> Vec<PathBuf> {
    env::split_paths(list)
        .filter(|path| !path.as_os_str().is_empty())
        .flat_map(|path| if path.is_dir() { driver_files(&path) } else { vec![path] })
        .collect()
}

/// Returns the folders in which the loader searches for `vulkan/icd.d` on Linux, in its order.
fn search_folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let in_home = |rest: &str| variable("HOME").map(|home| Path::new(&home).join(rest));
    let path_list = |name: &str, default: &str| -> Vec<PathBuf> {
        env::split_paths(&variable(name).unwrap_or_else(|| default.into())).collect()
    };
    let mut folders = Vec::new();
    folders.extend(variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| in_home(".config")));
    folders.extend(path_list("XDG_CONFIG_DIRS", "/etc/xdg"));
    folders.extend(["/usr/local/etc", "/etc"].map(PathBuf::from));
    folders.extend(variable("XDG_DATA_HOME").map(PathBuf::from).or_else(|| in_home(".local/share")));
    folders.extend(path_list("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    folders.push("/run/opengl-driver/share".into());
    folders
}

/// Returns the driver files in a folder, by name; empty if it does not exist.
fn driver_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json") && path.is_file())
        .collect();
    files.sort();
    files
}

/// Returns the software driver of a file, by its name.
fn software_driver_of(file: &Path) -> Option<SoftwareDriver> {
    let name = file.file_name()?.to_str()?;
    if name.starts_with("lvp_icd") {
        Some(SoftwareDriver::Lavapipe)
    } else if name.contains("swiftshader") {
        Some(SoftwareDriver::Swiftshader)
    } else {
        None
    }
}

const fn list_separator() -> &'static str {
    if cfg!(windows) { ";" } else { ":" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    /// An isolated file system and environment.
    struct World {
        root: tempfile::TempDir,
        variables: BTreeMap<&'static str, OsString>,
    }

    impl World {
        /// Contains lavapipe and a hardware driver in the system's data folder.
        fn new() -> World {
            let root = tempfile::tempdir().unwrap();
            let mut world = World { root, variables: BTreeMap::new() };
            world.file("share/vulkan/icd.d/radeon_icd.x86_64.json");
            world.file("share/vulkan/icd.d/lvp_icd.x86_64.json");
            world.file("share/vulkan/icd.d/README");
            // Hides the drivers of the machine that runs the test.
            for (name, folder) in [("HOME", "home"), ("XDG_CONFIG_DIRS", "xdg"), ("XDG_DATA_DIRS", "share")] {
                world.set(name, world.path(folder));
            }
            world
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn file(&self, name: &str) -> PathBuf {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "{}").unwrap();
            path
        }

        fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
            self.variables.insert(name, value.into());
        }

        fn discover(&self) -> Result<DriverEnvironment, EnvironmentError> {
            let swiftshader =
                [self.path("no/vk_swiftshader_icd.json"), self.path("chromium/vk_swiftshader_icd.json")];
            discover_from(&|name| self.variables.get(name).cloned(), &swiftshader)
        }

        /// Returns the paths relative to the root, without the machine's system folders.
        fn names(&self, files: &[PathBuf]) -> Vec<String> {
            let own = files.iter().filter_map(|file| file.strip_prefix(self.root.path()).ok());
            own.map(|file| file.to_str().unwrap().to_owned()).collect()
        }
    }

    const LAVAPIPE: &str = "share/vulkan/icd.d/lvp_icd.x86_64.json";
    const RADEON: &str = "share/vulkan/icd.d/radeon_icd.x86_64.json";
    const SWIFTSHADER: &str = "chromium/vk_swiftshader_icd.json";

    fn selectors(texts: &[&str]) -> Vec<Selector> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn without_additions_the_loader_variables_are_unchanged() {
        let world = World::new();
        let environment = world.discover().unwrap();
        assert_eq!(world.names(environment.files()), [LAVAPIPE, RADEON]);
        assert_eq!(environment.loader_variables(), []);
        assert!(environment.is_applied());
    }

    #[test]
    fn swiftshader_is_added_to_the_default_drivers() {
        let world = World::new();
        world.file(SWIFTSHADER);
        let environment = world.discover().unwrap();
        assert_eq!(world.names(environment.files()), [LAVAPIPE, RADEON, SWIFTSHADER]);
        assert!(
            environment.has_driver(SoftwareDriver::Lavapipe)
                && environment.has_driver(SoftwareDriver::Swiftshader)
        );
        let expected = env::join_paths(environment.files()).unwrap();
        assert_eq!(
            environment.loader_variables(),
            [("VK_DRIVER_FILES", expected.clone()), ("VK_ICD_FILENAMES", expected)]
        );
        assert!(!environment.is_applied());
    }

    #[test]
    fn files_are_added_by_name_and_counted_once() {
        let mut world = World::new();
        world.file(SWIFTSHADER);
        let other = world.file("other/swiftshader.json");
        let newer = world.file("newer/lvp_icd.x86_64.json");
        let again = world.path("newer/../share/vulkan/icd.d/lvp_icd.x86_64.json");
        world.set(SWIFTSHADER_VARIABLE, other);
        world.set(EXTRA_VARIABLE, env::join_paths([newer, again, PathBuf::new()]).unwrap());
        world.set(LOADER_ADDITION, world.file("added/a.json"));
        let environment = world.discover().unwrap();
        let expected =
            ["added/a.json", LAVAPIPE, RADEON, "other/swiftshader.json", "newer/lvp_icd.x86_64.json"];
        assert_eq!(world.names(environment.files()), expected);
        let lavapipe = environment.restrict_to(&selectors(&["lavapipe"]));
        assert_eq!(world.names(lavapipe.files()), [LAVAPIPE, "newer/lvp_icd.x86_64.json"]);
    }

    #[test]
    fn a_named_file_has_to_be_there() {
        for variable in [SWIFTSHADER_VARIABLE, EXTRA_VARIABLE] {
            let mut world = World::new();
            let path = world.path("nowhere.json");
            world.set(variable, path.clone());
            let error = world.discover().unwrap_err();
            assert_eq!(error, EnvironmentError { variable, path: path.clone() });
            assert_eq!(
                error.to_string(),
                format!("{variable} names `{}`, which is not a file", path.display())
            );
        }
    }

    #[test]
    fn variables_of_the_user_take_precedence() {
        for variable in LOADER_VARIABLES {
            let mut world = World::new();
            world.file(SWIFTSHADER);
            world.set(variable, world.path("share/vulkan/icd.d"));
            world.set(EXTRA_VARIABLE, world.path("nowhere.json"));
            let environment = world.discover().unwrap();
            assert_eq!(world.names(environment.files()), [LAVAPIPE, RADEON]);
            assert_eq!(environment.loader_variables(), []);
        }
    }

    #[test]
    fn only_named_software_drivers_are_pinned() {
        let world = World::new();
        world.file(SWIFTSHADER);
        let environment = world.discover().unwrap();
        let cases: [(&[&str], &[&str]); 6] = [
            (&["lavapipe"], &[LAVAPIPE]),
            (&["swiftshader"], &[SWIFTSHADER]),
            (&["swiftshader", "lavapipe"], &[LAVAPIPE, SWIFTSHADER]),
            (&["lavapipe", "gpu"], &[LAVAPIPE, RADEON, SWIFTSHADER]),
            (&["0"], &[LAVAPIPE, RADEON, SWIFTSHADER]),
            (&[], &[LAVAPIPE, RADEON, SWIFTSHADER]),
        ];
        for (texts, expected) in cases {
            let pinned = environment.restrict_to(&selectors(texts));
            assert_eq!(world.names(pinned.files()), expected, "{texts:?}");
            assert!(!pinned.loader_variables().is_empty());
        }
        // An unrecognized file may contain one of the drivers.
        let without = World::new().discover().unwrap();
        assert_eq!(without.restrict_to(&selectors(&["lavapipe", "swiftshader"])), without);
        // A restricted list must be set even if the loader would have found the file.
        assert_eq!(without.restrict_to(&selectors(&["lavapipe"])).loader_variables().len(), 2);
    }
}
