//! Compile-only devices: drivers of Mesa that compile for hardware that is not there, such as RADV on its null back end.
//!
//! The back end is chosen by an environment variable that the driver reads when an instance is created, and a family that
//! it does not know ends the process (`abort`). So each family lives in a worker process of its own, whose command
//! [`Mesa::command`] makes. A Mesa in a folder (a distribution's root, as `debootstrap` makes it) may be linked against a
//! newer C library than this program's: then the worker is started by the folder's own dynamic loader, with the folder's
//! libraries, and needs neither `chroot` nor rights.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use vendor::{Family, Vendor};

use crate::environment::{DriverEnvironment, EnvironmentError};

/// What selectors and names of the compile-only devices begin with that a Mesa makes without more.
pub const COMPILE_ONLY_PREFIX: &str = "radv:";
/// What the names of null devices begin with.
pub(crate) const NULL_HARDWARE: &str = "Null hardware";
/// Folders of libraries under a root, the multiarch ones of Debian first.
const LIBRARY_FOLDERS: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib64",
];
/// Dynamic loaders under a root.
const DYNAMIC_LOADERS: [&str; 3] =
    ["lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"];

/// Letters of the shortest name of a family and, with room to spare, of the longest.
const SHORTEST_NAME: usize = 4;
const LONGEST_NAME: usize = 32;

/// The family of a device by the name that its driver gives it: of `Null hardware (RADV NAVI31)` or `… (RADV NAVI31)`.
pub fn family_of(device_name: &str) -> Option<&'static Family> {
    vendor::of_device(device_name).map(|(_, family)| family)
}

/// An installation of a driver of Mesa that compiles for hardware that is not there.
#[derive(Clone, Debug)]
pub struct Mesa {
    vendor: &'static Vendor,
    driver_file: PathBuf,
    /// The root that it lies under, where that is not the system's own.
    root: Option<PathBuf>,
    /// The families that its library knows and their names there, once somebody has looked.
    spellings: OnceLock<Vec<(&'static Family, &'static str)>>,
}

/// Why a folder has no RADV.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MesaError {
    /// There is no driver file.
    #[error("no RADV in `{}`: expected usr/share/vulkan/icd.d/radeon_icd*.json under it", .0.display())]
    NoDriver(PathBuf),
    /// A variable names a driver file that is not there.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
}

impl Mesa {
    /// The system's own, then those whose driver files `VK_LITMUS_EXTRA_ICDS` names.
    ///
    /// # Errors
    /// When a variable names a driver file that is not there.
    pub fn installed() -> Result<Vec<Mesa>, MesaError> {
        let environment = DriverEnvironment::discover()?;
        Ok(environment.files().iter().filter_map(|file| Mesa::of(file.clone())).collect())
    }

    /// The one in a folder that is the root of a system.
    ///
    /// # Errors
    /// [`MesaError::NoDriver`] where it has none.
    pub fn in_folder(folder: &Path) -> Result<Mesa, MesaError> {
        let none = || MesaError::NoDriver(folder.to_owned());
        let root = folder.canonicalize().map_err(|_| none())?;
        let files = root.join("usr/share/vulkan/icd.d");
        let mut found: Vec<PathBuf> =
            fs::read_dir(files).map_err(|_| none())?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.sort();
        found.into_iter().find_map(Mesa::of).ok_or_else(none)
    }

    fn of(driver_file: PathBuf) -> Option<Mesa> {
        let vendor = vendor::of_driver_file(driver_file.file_name()?.to_str()?)?;
        Some(Mesa { vendor, root: root_of(&driver_file), driver_file, spellings: OnceLock::new() })
    }

    /// Its driver file.
    pub fn driver_file(&self) -> &Path {
        &self.driver_file
    }

    /// The root that it lies under, where that is another system's.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The families whose names its library holds. The driver itself lists none, and ends the process that asks for one
    /// that it does not know.
    pub fn families(&self) -> Vec<&'static Family> {
        self.spellings().iter().map(|(family, _)| *family).collect()
    }

    /// The command of a program in a process whose Vulkan is this driver for a family, by any of its names.
    pub fn command(&self, program: &Path, family: &str) -> Command {
        let meant = self.vendor.family(family);
        let spelled = self.spellings().iter().find(|(known, _)| Some(*known) == meant);
        let mut command = self.started(program);
        for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(name, &self.driver_file);
        }
        let (variable, word) = self.vendor.debug_word;
        let debug = std::env::var(variable).unwrap_or_default();
        let debug = if debug.is_empty() { word.to_owned() } else { format!("{debug},{word}") };
        command
            .env(self.vendor.chip_variable, spelled.map_or(family, |(_, name)| name))
            .envs(self.vendor.settings.iter().copied())
            .env(variable, debug);
        command
    }

    fn spellings(&self) -> &[(&'static Family, &'static str)] {
        self.spellings.get_or_init(|| {
            let library = self.library().and_then(|path| fs::read(path).ok()).unwrap_or_default();
            let names = upper_case_strings(&library);
            let known = |name: &&str| names.iter().any(|known| known.ends_with(&name.to_uppercase()));
            let spelled = |family: &'static Family| Some((family, family.names().find(known)?));
            self.vendor.families.iter().filter_map(spelled).collect()
        })
    }

    fn started(&self, program: &Path) -> Command {
        let Some(root) = &self.root else { return Command::new(program) };
        let Some(loader) = DYNAMIC_LOADERS.iter().map(|path| root.join(path)).find(|path| path.is_file())
        else {
            return Command::new(program);
        };
        let mut folders = OsString::new();
        for folder in LIBRARY_FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir())
        {
            if !folders.is_empty() {
                folders.push(":");
            }
            folders.push(folder);
        }
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(folders).arg(program);
        command
    }

    /// The driver's library: what the driver file names, or where libraries lie.
    fn library(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(&self.driver_file).unwrap_or_default();
        let named = text.split("\"library_path\"").nth(1).and_then(|rest| rest.split('"').nth(1));
        let named = Path::new(named.unwrap_or(self.vendor.library));
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        if named.is_absolute() {
            let inside = root.join(named.strip_prefix("/").unwrap_or(named));
            return [inside, named.to_owned()].into_iter().find(|path| path.is_file());
        }
        let beside = self.driver_file.parent().map(|folder| folder.join(named));
        let folders = LIBRARY_FOLDERS.iter().map(|folder| root.join(folder).join(named));
        beside.into_iter().chain(folders).find(|path| path.is_file())
    }
}

/// The strings of a library that could be names of chips, ended by a zero as C has them; linkers let one be the end of
/// another.
fn upper_case_strings(library: &[u8]) -> Vec<String> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let strings = library.split(|byte| *byte == 0);
    strings
        .filter_map(|bytes| {
            let length = bytes.iter().rev().take(LONGEST_NAME).take_while(|byte| is_part(byte)).count();
            let end = bytes.get(bytes.len() - length..).filter(|end| end.len() >= SHORTEST_NAME)?;
            String::from_utf8(end.to_vec()).ok()
        })
        .collect()
}

/// The root that a driver file lies under where it is another system's: one with a dynamic loader of its own.
fn root_of(file: &Path) -> Option<PathBuf> {
    let root = file.canonicalize().ok()?.ancestors().nth(5)?.to_owned();
    let foreign = root != Path::new("/") && DYNAMIC_LOADERS.iter().any(|path| root.join(path).is_file());
    foreign.then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root as `debootstrap` makes it, with a library that knows two families.
    fn root(library: &[u8]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let driver = br#"{"ICD": {"api_version": "1.4.305", "library_path": "libvulkan_radeon.so"}}"#;
        file("usr/share/vulkan/icd.d/radeon_icd.json", driver);
        file("usr/share/vulkan/icd.d/lvp_icd.json", b"{}");
        file("usr/lib/x86_64-linux-gnu/libvulkan_radeon.so", library);
        file("lib64/ld-linux-x86-64.so.2", b"");
        root
    }

    #[test]
    fn a_folder_has_its_own_loader_and_names() {
        let root = root(b"..\0GFX1100\0NAVI2\0NAVI21\0");
        let mesa = Mesa::in_folder(root.path()).unwrap();
        let names: Vec<&str> = mesa.families().iter().map(|family| family.name).collect();
        assert_eq!(names, ["navi21", "navi31"]);
        let command = mesa.command(Path::new("/bin/tool"), "navi31");
        assert!(command.get_program().to_string_lossy().ends_with("ld-linux-x86-64.so.2"));
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!((arguments[0].as_ref(), arguments[2].as_ref()), ("--library-path", "/bin/tool"));
        let variable = |name: &str| {
            let found = command.get_envs().find(|(known, _)| *known == name);
            found.and_then(|(_, value)| value).map(|value| value.to_string_lossy().into_owned())
        };
        // The name that this library knows.
        assert_eq!(variable("RADV_FORCE_FAMILY").as_deref(), Some("gfx1100"));
        assert!(variable("VK_DRIVER_FILES").unwrap().ends_with("radeon_icd.json"));
    }

    #[test]
    fn a_folder_without_radv_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let error = Mesa::in_folder(folder.path()).unwrap_err();
        assert!(error.to_string().contains("no RADV in"), "{error}");
    }
}
