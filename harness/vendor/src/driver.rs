//! A vendor's driver: the methods of compiling without hardware, the source of its machine text, and its chips.

use serde::Deserialize;

use crate::text::DisassemblerDialect;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// The prefix of selectors of its compile-only devices, before a colon: `radv`.
    pub selector_prefix: String,
    /// The display name of the driver.
    pub display_name: String,
    /// Its `VkDriverId`, also of real devices.
    pub driver_id: i32,
    /// The prefix of the names of its driver files.
    pub driver_file_prefix: String,
    /// The library name if a driver file names none that exists.
    pub library: String,
    /// The methods of compiling for absent hardware; the first supported one is used.
    pub compile_methods: Vec<CompileMethod>,
    /// The commands that install the driver and the shim.
    pub install: String,
    /// Additional environment variables. Caches are disabled because they would hide crashes and times.
    #[serde(default = "without_shader_cache")]
    pub environment: Vec<(String, String)>,
    /// A variable with a list of words, and the word to add to it.
    pub debug_flag: Option<(String, String)>,
    /// The source of the machine text.
    #[serde(default)]
    pub text_source: TextSource,
    /// The text before the chip in device names, if they contain it: `(RADV ` of `… (RADV NAVI31)`.
    pub chip_prefix: Option<String>,
    /// The chips of all driver versions, oldest first.
    pub families: Vec<ChipFamily>,
    /// The dialect of its machine code.
    #[serde(skip)]
    pub dialect: DisassemblerDialect,
    /// The descriptor layout, if the explorer supports the code.
    pub descriptors: Option<DescriptorLayout>,
}

/// Returns the variables that disable Mesa's cache of shaders.
fn without_shader_cache() -> Vec<(String, String)> {
    vec![("MESA_SHADER_CACHE_DISABLE".to_owned(), "true".to_owned())]
}

impl Vendor {
    /// Returns true if its compiler accepts split barriers of `SPV_INTEL_split_barrier`, by the driver
    /// version.
    ///
    /// All drivers here are Mesa's, which share the SPIR-V reader: 26.2.6 accepts them, 25.0.7 does not.
    pub fn has_intel_split_barriers(&self, driver_info: &str) -> bool {
        let version = driver_info.strip_prefix("Mesa ").unwrap_or_default();
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
        (major, minor) >= (26, 2)
    }

    /// Returns the family with a name, its own or another one; case-insensitive.
    pub fn find_family(&'static self, name: &str) -> Option<&'static ChipFamily> {
        self.families.iter().find(|family| family.all_names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns the chip in a device name, in lower case; it may be missing in our list.
    pub fn chip_in_device_name(&self, device_name: &str) -> Option<String> {
        let (_, rest) = device_name.split_once(self.chip_prefix.as_deref()?)?;
        let chip = rest.split([')', ' ']).next().filter(|chip| !chip.is_empty())?;
        Some(chip.to_lowercase())
    }
}

impl PartialEq for Vendor {
    fn eq(&self, other: &Vendor) -> bool {
        self.selector_prefix == other.selector_prefix
    }
}

impl Eq for Vendor {}

/// A method of compiling for absent hardware.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CompileMethod {
    /// A back end of the driver without hardware.
    NullBackEnd {
        /// The environment variable that selects the chip.
        variable: String,
        /// A string in the library that proves that it has this back end.
        marker: String,
    },
    /// A preloaded library that replaces the kernel device (Mesa's drm-shim).
    Shim {
        library: String,
        /// The environment variable that selects the chip; a shim without one simulates a single chip.
        variable: Option<String>,
        /// True if the library contains the names of its chips.
        #[serde(default)]
        has_chip_names: bool,
    },
}

/// The source of a driver's machine text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextSource {
    /// `VK_KHR_pipeline_executable_properties`.
    #[default]
    Properties,
    /// Standard output during pipeline creation, shader after shader: NIR, then code.
    StandardOutput {
        /// The prefix of the line with the name of a shader's stage.
        shader_prefix: String,
        /// The prefix of the line where the code begins.
        code_prefix: String,
    },
}

impl TextSource {
    /// Returns the named code forms of a stage's shader (`COMPUTE`, `VERTEX`, `FRAGMENT`) in a driver's
    /// standard output.
    pub fn code_forms<'o>(&self, output: &'o str, stage: &str) -> Vec<(&'static str, &'o str)> {
        let TextSource::StandardOutput { shader_prefix: shader, code_prefix: code } = self else {
            return Vec::new();
        };
        let lines = |text: &str, start: &str| {
            let begins = |at: &usize| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
            text.match_indices(start).map(|(at, _)| at).filter(begins).collect::<Vec<usize>>()
        };
        let shaders = lines(output, shader);
        let is_of_stage = |at: &usize| {
            let line = output.get(at + shader.len()..).and_then(|rest| rest.lines().next());
            line.is_some_and(|name| name.trim() == stage)
        };
        let begin = shaders.iter().copied().rfind(is_of_stage).unwrap_or_default();
        let end = shaders.iter().copied().find(|at| *at > begin).unwrap_or(output.len());
        let output = output.get(begin..end).unwrap_or_default();
        let at = lines(output, code).first().copied().unwrap_or(output.len());
        let (nir, code) = output.split_at(at);
        [("NIR", nir), ("Assembly", code)].into_iter().filter(|(_, text)| !text.trim().is_empty()).collect()
    }
}

/// A family of chips with its own code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipFamily {
    /// Its name in selectors: the latest driver's name in lower case, unique among all vendors.
    pub name: String,
    /// Other names, those of earlier drivers first.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The compiler target of its code: `gfx1030`.
    pub target: String,
    /// The value of a shim's variable, if it is not the name.
    shim_value: Option<String>,
}

impl ChipFamily {
    /// Returns all its names, its own first.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }

    /// Returns the value of a shim's variable.
    pub fn shim_value(&self) -> &str {
        self.shim_value.as_deref().unwrap_or(&self.name)
    }
}

/// The sizes of descriptors in a set, which are also their alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptorLayout {
    /// The size of a buffer or texel buffer descriptor.
    pub buffer_bytes: u32,
    /// The size of an image descriptor.
    pub image_bytes: u32,
}
