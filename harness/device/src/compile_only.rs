//! Compile-only devices: Mesa's RADV on its null back end, which compiles for AMD hardware that is not there.
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

use crate::environment::{DriverEnvironment, EnvironmentError};

/// What the names of null devices begin with.
pub(crate) const NULL_HARDWARE: &str = "Null hardware";
/// What selectors and names of compile-only devices begin with.
pub const COMPILE_ONLY_PREFIX: &str = "radv:";
/// Chooses the null back end.
const FAMILY_VARIABLE: &str = "RADV_FORCE_FAMILY";
/// What RADV's driver files are called.
const DRIVER_FILE: &str = "radeon_icd";
/// The library behind them, where a driver file names none that is found.
const LIBRARY: &str = "libvulkan_radeon.so";
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

/// A generation of AMD's graphics core, by which machine code and memory hierarchy differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Southern Islands.
    Gfx6,
    /// Sea Islands.
    Gfx7,
    /// Volcanic Islands, Polaris.
    Gfx8,
    /// Vega.
    Gfx9,
    /// Compute parts on the base of Vega (MI100 to MI300).
    Cdna,
    /// RDNA 1.
    Gfx10,
    /// RDNA 2.
    Gfx10_3,
    /// RDNA 3.
    Gfx11,
    /// RDNA 3.5.
    Gfx11_5,
    /// RDNA 4.
    Gfx12,
}

impl Generation {
    /// Its name in reports: `gfx10.3`.
    pub fn name(self) -> &'static str {
        match self {
            Generation::Gfx6 => "gfx6",
            Generation::Gfx7 => "gfx7",
            Generation::Gfx8 => "gfx8",
            Generation::Gfx9 => "gfx9",
            Generation::Cdna => "cdna",
            Generation::Gfx10 => "gfx10",
            Generation::Gfx10_3 => "gfx10.3",
            Generation::Gfx11 => "gfx11",
            Generation::Gfx11_5 => "gfx11.5",
            Generation::Gfx12 => "gfx12",
        }
    }
}

/// A family of chips that RADV compiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name in selectors: what the latest Mesa calls it, in lower case.
    pub name: &'static str,
    /// What an older Mesa calls it.
    pub earlier: Option<&'static str>,
    /// Its generation.
    pub generation: Generation,
}

const fn family(name: &'static str, generation: Generation) -> Family {
    Family { name, earlier: None, generation }
}

const fn renamed(name: &'static str, earlier: &'static str, generation: Generation) -> Family {
    Family { name, earlier: Some(earlier), generation }
}

/// The families that some Mesa knows (`ac_get_family_name` in its `src/amd/common`), oldest first.
pub const FAMILIES: &[Family] = &[
    family("tahiti", Generation::Gfx6),
    family("pitcairn", Generation::Gfx6),
    family("verde", Generation::Gfx6),
    family("oland", Generation::Gfx6),
    family("hainan", Generation::Gfx6),
    family("bonaire", Generation::Gfx7),
    family("hawaii", Generation::Gfx7),
    family("kaveri", Generation::Gfx7),
    family("kabini", Generation::Gfx7),
    family("iceland", Generation::Gfx8),
    family("tonga", Generation::Gfx8),
    family("fiji", Generation::Gfx8),
    family("polaris10", Generation::Gfx8),
    family("polaris11", Generation::Gfx8),
    family("polaris12", Generation::Gfx8),
    family("vegam", Generation::Gfx8),
    family("carrizo", Generation::Gfx8),
    family("stoney", Generation::Gfx8),
    family("vega10", Generation::Gfx9),
    family("vega12", Generation::Gfx9),
    family("vega20", Generation::Gfx9),
    family("raven", Generation::Gfx9),
    family("raven2", Generation::Gfx9),
    family("renoir", Generation::Gfx9),
    renamed("mi100", "arcturus", Generation::Cdna),
    renamed("mi200", "aldebaran", Generation::Cdna),
    family("gfx940", Generation::Cdna),
    family("navi10", Generation::Gfx10),
    family("navi12", Generation::Gfx10),
    family("navi14", Generation::Gfx10),
    family("navi21", Generation::Gfx10_3),
    family("navi22", Generation::Gfx10_3),
    family("navi23", Generation::Gfx10_3),
    family("navi24", Generation::Gfx10_3),
    family("vangogh", Generation::Gfx10_3),
    family("rembrandt", Generation::Gfx10_3),
    renamed("raphael_mendocino", "gfx1036", Generation::Gfx10_3),
    renamed("navi31", "gfx1100", Generation::Gfx11),
    renamed("navi32", "gfx1101", Generation::Gfx11),
    renamed("navi33", "gfx1102", Generation::Gfx11),
    renamed("phoenix", "gfx1103_r1", Generation::Gfx11),
    renamed("phoenix2", "gfx1103_r2", Generation::Gfx11),
    family("gfx1150", Generation::Gfx11_5),
    family("gfx1151", Generation::Gfx11_5),
    family("gfx1152", Generation::Gfx11_5),
    family("gfx1153", Generation::Gfx11_5),
    family("gfx1200", Generation::Gfx12),
    family("gfx1201", Generation::Gfx12),
];

impl Family {
    /// The family that a user means by a name, whatever the case: its name, or what an older Mesa calls it.
    pub fn named(name: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| {
            family.name.eq_ignore_ascii_case(name)
                || family.earlier.is_some_and(|earlier| earlier.eq_ignore_ascii_case(name))
        })
    }
}

/// The family of a device that RADV names `Null hardware (RADV NAVI31)` or `… (RADV NAVI31)`.
pub fn family_of(device_name: &str) -> Option<&'static Family> {
    Family::named(&chip_of(device_name)?)
}

/// The short name of a null device by the name that its driver gives it.
pub(crate) fn name_of(device_name: &str) -> Option<String> {
    let chip = chip_of(device_name)?;
    let name = Family::named(&chip).map_or(chip.as_str(), |family| family.name);
    Some(format!("{COMPILE_ONLY_PREFIX}{name}"))
}

/// `navi31` of `… (RADV NAVI31)`.
fn chip_of(device_name: &str) -> Option<String> {
    let (_, behind) = device_name.split_once("(RADV ")?;
    let chip = behind.split([')', ' ']).next().filter(|chip| !chip.is_empty())?;
    Some(chip.to_lowercase())
}

/// An installation of Mesa that has RADV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesa {
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
        let files = environment.files().iter().filter(|file| is_radv(file));
        Ok(files.map(|file| Mesa::of(file.clone())).collect())
    }

    /// The one in a folder that is the root of a system.
    ///
    /// # Errors
    /// [`MesaError::NoDriver`] where it has none.
    pub fn in_folder(folder: &Path) -> Result<Mesa, MesaError> {
        let none = || MesaError::NoDriver(folder.to_owned());
        let root = folder.canonicalize().map_err(|_| none())?;
        let files = root.join("usr/share/vulkan/icd.d");
        let mut found: Vec<PathBuf> = fs::read_dir(files)
            .map_err(|_| none())?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_radv(path))
            .collect();
        found.sort();
        let driver_file = found.into_iter().next().ok_or_else(none)?;
        Ok(Mesa::of(driver_file))
    }

    fn of(driver_file: PathBuf) -> Mesa {
        Mesa { root: root_of(&driver_file), driver_file, spellings: OnceLock::new() }
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

    /// The command of a program in a process whose Vulkan is this Mesa's RADV for a family, by any of its names.
    pub fn command(&self, program: &Path, family: &str) -> Command {
        let meant = Family::named(family);
        let spelled = self.spellings().iter().find(|(known, _)| Some(*known) == meant);
        let mut command = self.started(program);
        for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(name, &self.driver_file);
        }
        // Caches would hide crashes and times.
        let debug = std::env::var("RADV_DEBUG").unwrap_or_default();
        let debug = if debug.is_empty() { "nocache".to_owned() } else { format!("{debug},nocache") };
        command
            .env(FAMILY_VARIABLE, spelled.map_or(family, |(_, name)| name))
            .env("MESA_SHADER_CACHE_DISABLE", "true")
            .env("RADV_DEBUG", debug);
        command
    }

    fn spellings(&self) -> &[(&'static Family, &'static str)] {
        self.spellings.get_or_init(|| {
            let library = self.library().and_then(|path| fs::read(path).ok()).unwrap_or_default();
            let names = upper_case_strings(&library);
            let known = |name: &&str| names.iter().any(|known| known.ends_with(&name.to_uppercase()));
            FAMILIES
                .iter()
                .filter_map(|family| {
                    let spelled = [Some(family.name), family.earlier].into_iter().flatten().find(known)?;
                    Some((family, spelled))
                })
                .collect()
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
        let named = Path::new(named.unwrap_or(LIBRARY));
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

fn is_radv(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(DRIVER_FILE) && name.ends_with(".json"))
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

    #[test]
    fn families_are_found_by_both_names() {
        assert_eq!(Family::named("NAVI31").map(|family| family.name), Some("navi31"));
        assert_eq!(Family::named("gfx1100").map(|family| family.name), Some("navi31"));
        assert_eq!(Family::named("bogus"), None);
    }

    #[test]
    fn null_devices_are_named_after_their_family() {
        assert_eq!(name_of("Null hardware (RADV GFX1100)").as_deref(), Some("radv:navi31"));
        // With another backend.
        assert_eq!(name_of("Null hardware (RADV VEGA10 (LLVM 19.1.7))").as_deref(), Some("radv:vega10"));
        let generation = |name: &str| family_of(name).map(|family| family.generation);
        assert_eq!(generation("AMD Radeon RX 6800 (RADV NAVI21)"), Some(Generation::Gfx10_3));
        assert_eq!(generation("llvmpipe"), None);
    }

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
