//! Compile-only devices: Mesa drivers that compile for absent hardware.
//!
//! They use a null back end (RADV before Mesa 26.1) or a shim that replaces the kernel device. An environment
//! variable selects the chip when the process enumerates devices, and an unknown chip aborts the process. So
//! each family lives in its own worker process, whose command [`Mesa::worker_command`] builds.
//!
//! A Mesa in a folder (a system root made by `ci/compilers` or `debootstrap`) may need a newer C library than
//! this program's. Then the folder's dynamic loader starts the worker with the folder's libraries, which
//! needs neither `chroot` nor privileges.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use vendor::{ChipFamily, CompileMethod, VENDORS, Vendor};

use crate::environment::{DriverEnvironment, EnvironmentError};

/// The variable that lists folders of Mesa installations, separated as in `PATH`: system roots, or folders of
/// `ci/compilers`.
pub const COMPILERS_VARIABLE: &str = "VK_LITMUS_COMPILERS";
/// The prefix of the names of null devices.
pub(crate) const NULL_HARDWARE: &str = "Null hardware";
/// Library folders below a root, Debian's multiarch folders first.
const LIBRARY_FOLDERS: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib64",
];
/// Dynamic loaders below a root.
const DYNAMIC_LOADERS: [&str; 3] =
    ["lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"];
/// The folder of driver files below a root.
const DRIVER_FILES: &str = "usr/share/vulkan/icd.d";
/// The folder of shims that no package has, next to the roots of `ci/compilers`.
const SHIMS: &str = "shims";

/// Length of the shortest family name, and a bound on the longest.
const MIN_NAME_LENGTH: usize = 4;
const MAX_NAME_LENGTH: usize = 32;

/// An installed Mesa driver that compiles for absent hardware.
#[derive(Clone, Debug)]
pub struct Mesa {
    vendor: &'static Vendor,
    driver_file: PathBuf,
    /// The root that contains it; `None` for the running system.
    root: Option<PathBuf>,
    /// The method of selecting a chip, determined on first use.
    method: OnceLock<Result<ChosenMethod, MesaError>>,
}

/// The method that an installation supports.
#[derive(Clone, Debug)]
struct ChosenMethod {
    /// The variable that selects a chip.
    variable: Option<&'static str>,
    shim: Option<PathBuf>,
    /// The supported families, with the values of the variable.
    spellings: Vec<(&'static ChipFamily, &'static str)>,
}

/// The reason why a folder or an installation provides no compile-only devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MesaError {
    #[error(
        "no driver of Mesa in `{}`, which {named_by} names: {}; `ci/compilers {}` makes a folder of Mesas",
        folder.display(),
        explain_missing_mesa(folder),
        folder.display()
    )]
    NoDriver { folder: PathBuf, named_by: &'static str },
    /// The driver has no null back end, and its shim is not installed.
    #[error(
        "{driver} of {} has no null back end, and its shim {shim} was found in none of {}; {install}",
        driver_file.display(),
        looked.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoShim {
        driver: &'static str,
        driver_file: PathBuf,
        shim: &'static str,
        looked: Vec<PathBuf>,
        install: &'static str,
    },
    /// A variable names a driver file that does not exist.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
}

impl Mesa {
    /// Returns the compile-only drivers: of the system, of `VK_LITMUS_EXTRA_ICDS`, then of
    /// `VK_LITMUS_COMPILERS`, newest first.
    ///
    /// # Errors
    ///
    /// If a variable names a driver file or a folder that does not exist.
    pub fn find_installed() -> Result<Vec<Mesa>, MesaError> {
        let environment = DriverEnvironment::discover()?;
        let mut found: Vec<Mesa> =
            environment.files().iter().filter_map(|file| Mesa::from_driver_file(file.clone())).collect();
        for folder in compiler_folders() {
            found.extend(Mesa::find_in_folder(&folder, COMPILERS_VARIABLE)?);
        }
        Ok(found)
    }

    /// Returns the drivers in a folder that is a system root or contains roots; the last root by name comes
    /// first.
    ///
    /// Names that end in versions thus put the newest first. `named_by` is the flag or variable that names
    /// the folder.
    ///
    /// # Errors
    ///
    /// [`MesaError::NoDriver`] if it contains none.
    pub fn find_in_folder(folder: &Path, named_by: &'static str) -> Result<Vec<Mesa>, MesaError> {
        let none = || MesaError::NoDriver { folder: folder.to_owned(), named_by };
        let root = folder.canonicalize().map_err(|_| none())?;
        let mut found = find_in_root(&root);
        if found.is_empty() {
            found = sorted_entries(&root).into_iter().rev().flat_map(|root| find_in_root(&root)).collect();
        }
        if found.is_empty() { Err(none()) } else { Ok(found) }
    }

    fn from_driver_file(driver_file: PathBuf) -> Option<Mesa> {
        let vendor = vendor::find_by_driver_file(driver_file.file_name()?.to_str()?)?;
        Some(Mesa { vendor, root: system_root(&driver_file), driver_file, method: OnceLock::new() })
    }

    /// Returns the vendor of the driver.
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    pub fn driver_file(&self) -> &Path {
        &self.driver_file
    }

    /// Returns the root that contains it, unless it belongs to the running system.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the families that it may support: those whose names occur in its library or its shim, else
    /// all.
    ///
    /// A driver has no list of chips, and aborts the process for an unknown one.
    ///
    /// # Errors
    ///
    /// [`MesaError::NoShim`].
    pub fn known_families(&self) -> Result<Vec<&'static ChipFamily>, MesaError> {
        let method = self.chosen_method()?;
        Ok(method.spellings.iter().map(|(family, _)| *family).collect())
    }

    /// Returns true if it aborts for an unknown chip, so that chips outside of our lists can be tried.
    ///
    /// Other shims map any text to some chip.
    pub fn refuses_unknown(&self) -> bool {
        let names = |method: &CompileMethod| {
            matches!(
                method,
                CompileMethod::NullBackEnd { .. } | CompileMethod::Shim { has_chip_names: true, .. }
            )
        };
        self.vendor.compile_methods.iter().all(names)
    }

    /// Returns the command of a worker process whose only Vulkan driver is this one for a family, by any of
    /// its names.
    pub fn worker_command(&self, program: &Path, family: &str) -> Command {
        let known_family = self.vendor.find_family(family);
        let name = known_family.map_or(family, |family| &family.name);
        let method = self.chosen_method().ok();
        let shim = method.and_then(|chosen| chosen.shim.as_deref());
        let mut command = self.base_command(program, shim);
        for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(name, &self.driver_file);
        }
        command.env(vendor::SELECTOR_VARIABLE, format!("{}:{name}", self.vendor.selector_prefix));
        command.envs(self.vendor.environment.iter().map(|(name, value)| (name, value)));
        if let Some(chosen) = method
            && let Some(variable) = chosen.variable
        {
            let spelling = chosen.spellings.iter().find(|(known, _)| Some(*known) == known_family);
            let listed = known_family.filter(|_| chosen.shim.is_some()).map(ChipFamily::shim_value);
            command.env(variable, spelling.map_or(listed.unwrap_or(family), |(_, name)| name));
        }
        if let Some((variable, word)) = &self.vendor.debug_flag {
            let debug = std::env::var(variable).unwrap_or_default();
            command.env(variable, if debug.is_empty() { word.to_owned() } else { format!("{debug},{word}") });
        }
        command
    }

    fn chosen_method(&self) -> Result<&ChosenMethod, MesaError> {
        self.method.get_or_init(|| self.choose_method()).as_ref().map_err(Clone::clone)
    }

    /// Returns the first method that the installation supports.
    fn choose_method(&self) -> Result<ChosenMethod, MesaError> {
        let mut missing_shim = None;
        for method in &self.vendor.compile_methods {
            match method {
                CompileMethod::NullBackEnd { variable, marker: sign } => {
                    let library =
                        self.library_path().and_then(|path| fs::read(path).ok()).unwrap_or_default();
                    if !contains_text(&library, sign) {
                        continue;
                    }
                    let names = upper_case_strings(&library);
                    let known = |name: &&str| names.iter().any(|known| known.ends_with(&name.to_uppercase()));
                    let spelled =
                        |family: &'static ChipFamily| Some((family, family.all_names().find(known)?));
                    let spellings = self.vendor.families.iter().filter_map(spelled).collect();
                    return Ok(ChosenMethod { variable: Some(variable), shim: None, spellings });
                }
                CompileMethod::Shim { library: shim, variable, has_chip_names: names_chips } => {
                    let folders = self.shim_folders();
                    let Some(path) =
                        folders.iter().map(|folder| folder.join(shim)).find(|path| path.is_file())
                    else {
                        missing_shim = Some((shim.as_str(), folders));
                        continue;
                    };
                    let text = if *names_chips { fs::read(&path).unwrap_or_default() } else { Vec::new() };
                    let known = |family: &&ChipFamily| {
                        !names_chips || contains_text(&text, &format!("\0{}\0", family.shim_value()))
                    };
                    let families = self.vendor.families.iter().filter(known);
                    let spellings = families.map(|family| (family, family.shim_value())).collect();
                    let variable = variable.as_deref();
                    return Ok(ChosenMethod { variable, shim: Some(path), spellings });
                }
            }
        }
        let (shim, folders) = missing_shim.unwrap_or_default();
        let Vendor { display_name: driver, install, .. } = self.vendor;
        Err(MesaError::NoShim {
            driver,
            driver_file: self.driver_file.clone(),
            shim,
            looked: folders,
            install,
        })
    }

    /// Returns the possible folders of shims: the driver's libraries, next to its root, and the folders of
    /// `ci/compilers`.
    fn shim_folders(&self) -> Vec<PathBuf> {
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        let mut folders: Vec<PathBuf> =
            LIBRARY_FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()).collect();
        folders.extend(self.root.as_deref().and_then(Path::parent).map(|beside| beside.join(SHIMS)));
        for folder in compiler_folders() {
            let folder = folder.join(SHIMS);
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    fn base_command(&self, program: &Path, shim: Option<&Path>) -> Command {
        let loader = self.root.as_ref().and_then(|root| {
            let loader = DYNAMIC_LOADERS.iter().map(|path| root.join(path)).find(|path| path.is_file())?;
            Some((root, loader))
        });
        let Some((root, loader)) = loader else {
            let mut command = Command::new(program);
            if let Some(shim) = shim {
                command.env("LD_PRELOAD", shim);
            }
            return command;
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
        command.arg("--library-path").arg(folders);
        if let Some(shim) = shim {
            command.arg("--preload").arg(shim);
        }
        command.arg(program);
        command
    }

    /// Returns the path of the driver's library: from the driver file, or from the library folders.
    fn library_path(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(&self.driver_file).unwrap_or_default();
        let named = text.split("\"library_path\"").nth(1).and_then(|rest| rest.split('"').nth(1));
        let named = Path::new(named.unwrap_or(&self.vendor.library));
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        if named.is_absolute() {
            let inside = root.join(named.strip_prefix("/").unwrap_or(named));
            return [inside, named.to_owned()].into_iter().find(|path| path.is_file());
        }
        let adjacent = self.driver_file.parent().map(|folder| folder.join(named));
        let folders = LIBRARY_FOLDERS.iter().map(|folder| root.join(folder).join(named));
        adjacent.into_iter().chain(folders).find(|path| path.is_file())
    }
}

/// Returns the folders that `VK_LITMUS_COMPILERS` names.
fn compiler_folders() -> Vec<PathBuf> {
    let named = std::env::var_os(COMPILERS_VARIABLE).unwrap_or_default();
    std::env::split_paths(&named).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// Explains why a folder contains no Mesa.
fn explain_missing_mesa(folder: &Path) -> String {
    if !folder.is_dir() {
        return "there is no such folder".to_owned();
    }
    let names: Vec<&str> = VENDORS.iter().map(|vendor| vendor.driver_file_prefix.as_str()).collect();
    format!(
        "expected {DRIVER_FILES}/NAME*.json under it or under a folder in it, NAME being one of {}",
        names.join(", ")
    )
}

/// Returns the drivers in a root, in the order of vendors.
///
/// Without a dynamic loader in the root, the system's loader starts the workers.
fn find_in_root(root: &Path) -> Vec<Mesa> {
    let files = sorted_entries(&root.join(DRIVER_FILES));
    let mut found: Vec<Mesa> = files.into_iter().filter_map(Mesa::from_driver_file).collect();
    found.iter_mut().for_each(|mesa| mesa.root = Some(root.to_owned()));
    found.sort_by_key(|mesa| {
        VENDORS.iter().position(|vendor| vendor.selector_prefix == mesa.vendor.selector_prefix)
    });
    found
}

/// Returns the entries of a folder by name; numbers in names compare numerically.
fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let numbers = |path: &PathBuf| -> Vec<u64> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    found.sort_by_cached_key(|path| (numbers(path), path.clone()));
    found
}

/// Returns true if the bytes contain a text.
fn contains_text(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns the strings of a library that may be chip names.
///
/// They end with a zero byte as in C; a linker may merge one into the end of another.
fn upper_case_strings(library: &[u8]) -> Vec<String> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let strings = library.split(|byte| *byte == 0);
    strings
        .filter_map(|bytes| {
            let length = bytes.iter().rev().take(MAX_NAME_LENGTH).take_while(|byte| is_part(byte)).count();
            let end = bytes.get(bytes.len() - length..).filter(|end| end.len() >= MIN_NAME_LENGTH)?;
            String::from_utf8(end.to_vec()).ok()
        })
        .collect()
}

/// Returns the root of a driver file, if it is another system's: one with its own dynamic loader.
fn system_root(file: &Path) -> Option<PathBuf> {
    let root = file.canonicalize().ok()?.ancestors().nth(5)?.to_owned();
    let has_own_loader =
        root != Path::new("/") && DYNAMIC_LOADERS.iter().any(|path| root.join(path).is_file());
    has_own_loader.then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &tempfile::TempDir, path: &str, bytes: &[u8]) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn variable(command: &Command, name: &str) -> Option<String> {
        let found = command.get_envs().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value).map(|value| value.to_string_lossy().into_owned())
    }

    fn names(mesa: &Mesa) -> Vec<&'static str> {
        mesa.known_families().unwrap().iter().map(|family| family.name.as_str()).collect()
    }

    /// Creates a root as `debootstrap` does, with a RADV library.
    fn root(library: &[u8]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, bytes: &[u8]| file(&root, path, bytes);
        let driver = br#"{"ICD": {"api_version": "1.4.305", "library_path": "libvulkan_radeon.so"}}"#;
        file("usr/share/vulkan/icd.d/radeon_icd.json", driver);
        file("usr/share/vulkan/icd.d/lvp_icd.json", b"{}");
        file("usr/lib/x86_64-linux-gnu/libvulkan_radeon.so", library);
        file("lib64/ld-linux-x86-64.so.2", b"");
        root
    }

    #[test]
    fn a_folder_has_a_separate_loader_and_names() {
        let root = root(b"Null hardware\0..\0GFX1100\0NAVI2\0NAVI21\0");
        let [mesa] = Mesa::find_in_folder(root.path(), COMPILERS_VARIABLE).unwrap().try_into().unwrap();
        assert_eq!(names(&mesa), ["navi21", "navi31"]);
        let command = mesa.worker_command(Path::new("/bin/tool"), "navi31");
        assert!(command.get_program().to_string_lossy().ends_with("ld-linux-x86-64.so.2"));
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!((arguments[0].as_ref(), arguments[2].as_ref()), ("--library-path", "/bin/tool"));
        // The spelling that this library supports.
        assert_eq!(variable(&command, "RADV_FORCE_FAMILY").as_deref(), Some("gfx1100"));
        assert_eq!(variable(&command, vendor::SELECTOR_VARIABLE).as_deref(), Some("radv:navi31"));
        assert!(variable(&command, "VK_DRIVER_FILES").unwrap().ends_with("radeon_icd.json"));
    }

    #[test]
    fn a_shim_replaces_a_missing_null_back_end() {
        let root = root(b"RADV_FORCE_FAMILY / AMD_FORCE_FAMILY has been removed\0GFX1100\0");
        let [mesa] = Mesa::find_in_folder(root.path(), COMPILERS_VARIABLE).unwrap().try_into().unwrap();
        let error = mesa.known_families().unwrap_err().to_string();
        assert!(error.contains("no null back end") && error.contains("mesa-drm-shim"), "{error}");
        assert!(error.contains("libamdgpu_noop_drm_shim.so was found in none of /"), "{error}");
        file(&root, "usr/lib/x86_64-linux-gnu/libamdgpu_noop_drm_shim.so", b"x\0navi31\0vega10\0navi2\0");
        let [mesa] = Mesa::find_in_folder(root.path(), COMPILERS_VARIABLE).unwrap().try_into().unwrap();
        assert_eq!(names(&mesa), ["vega10", "navi31"]);
        let command = mesa.worker_command(Path::new("/bin/tool"), "gfx1100");
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(arguments[2], "--preload");
        assert!(arguments[3].ends_with("libamdgpu_noop_drm_shim.so"));
        assert_eq!(variable(&command, "AMDGPU_GPU_ID").as_deref(), Some("navi31"));
        assert_eq!(variable(&command, "RADV_FORCE_FAMILY"), None);
    }

    /// For each vendor, one root in a folder of roots and a shim next to it: the variable and its value.
    #[test]
    fn every_vendor_has_a_shim_and_a_variable() {
        let folder = tempfile::tempdir().unwrap();
        for vendor in VENDORS.iter() {
            let driver = format!("{{\"ICD\": {{\"library_path\": \"{}\"}}}}", vendor.library);
            for version in ["mesa-9.0", "mesa-26.2.6"] {
                let path = format!("{version}/{DRIVER_FILES}/{}.json", vendor.driver_file_prefix);
                file(&folder, &path, driver.as_bytes());
            }
            for way in &vendor.compile_methods {
                if let CompileMethod::Shim { library, .. } = way {
                    file(&folder, &format!("{SHIMS}/{library}"), b"\0navi31\0");
                }
            }
        }
        for root in ["mesa-9.0", "mesa-26.2.6"] {
            file(&folder, &format!("{root}/lib64/ld-linux-x86-64.so.2"), b"");
        }
        let found = Mesa::find_in_folder(folder.path(), COMPILERS_VARIABLE).unwrap();
        assert_eq!(found.len(), 2 * VENDORS.len());
        assert!(found[0].driver_file().to_string_lossy().contains("mesa-26.2.6"), "the newest first");
        let chosen: Vec<String> = found[..VENDORS.len()]
            .iter()
            .map(|mesa| {
                let family = mesa.known_families().unwrap()[0];
                let command = mesa.worker_command(Path::new("/bin/tool"), &family.name);
                let shim = command.get_args().nth(3).unwrap().to_string_lossy().into_owned();
                let shim = shim.rsplit('/').next().unwrap().to_owned();
                let chip = mesa.vendor.compile_methods.iter().find_map(|way| match way {
                    CompileMethod::Shim { variable, .. } => Some(match variable {
                        Some(name) => format!("{name}={}", variable_of(&command, name)),
                        None => "no variable".to_owned(),
                    }),
                    CompileMethod::NullBackEnd { .. } => None,
                });
                format!("{}:{} {shim} {}", mesa.vendor.selector_prefix, family.name, chip.unwrap())
            })
            .collect();
        assert_eq!(
            chosen,
            [
                "radv:navi31 libamdgpu_noop_drm_shim.so AMDGPU_GPU_ID=navi31",
                "nvk:gm107 libnouveau_noop_drm_shim.so NOUVEAU_CHIPSET=117",
                "anv:skl libintel_noop_drm_shim.so INTEL_STUB_GPU_PLATFORM=skl",
                "hasvk:ivb libintel_noop_drm_shim.so INTEL_STUB_GPU_PLATFORM=ivb",
                "turnip:a618 libfreedreno_noop_drm_shim.so FD_GPU_ID=618",
                "honeykrisp:m1 libasahi_noop_drm_shim.so no variable",
                "panvk:g31 libpanfrost_noop_drm_shim.so PAN_GPU_ID=7093",
                "v3dv:v3d42 libv3d_noop_drm_shim.so no variable",
            ]
        );
    }

    fn variable_of(command: &Command, name: &str) -> String {
        variable(command, name).unwrap_or_default()
    }

    #[test]
    fn a_folder_without_a_driver_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = Mesa::find_in_folder(folder.path(), COMPILERS_VARIABLE).unwrap_err().to_string();
        assert!(error.contains("no driver of Mesa in"), "{error}");
        assert!(error.contains("nouveau_icd") && error.contains("usr/share/vulkan/icd.d"), "{error}");
        let error =
            Mesa::find_in_folder(&folder.path().join("none"), COMPILERS_VARIABLE).unwrap_err().to_string();
        assert!(error.contains("which VK_LITMUS_COMPILERS names: there is no such folder"), "{error}");
    }

    /// Shims of the folder are used, whether it has a dynamic loader or not.
    #[test]
    fn a_folder_without_a_loader_uses_shims() {
        let root = root(b"GFX1100\0");
        fs::remove_file(root.path().join("lib64/ld-linux-x86-64.so.2")).unwrap();
        file(&root, "usr/lib/x86_64-linux-gnu/libamdgpu_noop_drm_shim.so", b"x\0navi31\0");
        let [mesa] = Mesa::find_in_folder(root.path(), COMPILERS_VARIABLE).unwrap().try_into().unwrap();
        let command = mesa.worker_command(Path::new("/bin/tool"), "navi31");
        assert_eq!(command.get_program(), "/bin/tool");
        let shim = variable(&command, "LD_PRELOAD").unwrap();
        assert!(Path::new(&shim).starts_with(root.path().canonicalize().unwrap()), "{shim}");
    }
}
