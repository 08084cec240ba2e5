//! A vendor's driver: the methods of compiling without hardware, the source of its machine text, and its chips.

use crate::text::DisassemblerDialect;

#[derive(Debug)]
pub struct Vendor {
    /// The prefix of selectors of its compile-only devices, before a colon: `radv`.
    pub selector_prefix: &'static str,
    /// The display name of the driver.
    pub display_name: &'static str,
    /// Its `VkDriverId`, also of real devices.
    pub driver_id: i32,
    /// The prefix of the names of its driver files.
    pub driver_file_prefix: &'static str,
    /// The library name if a driver file names none that exists.
    pub library: &'static str,
    /// The methods of compiling for absent hardware; the first supported one is used.
    pub compile_methods: &'static [CompileMethod],
    /// The commands that install the driver and the shim.
    pub install: &'static str,
    /// Additional environment variables. Caches are disabled because they would hide crashes and times.
    pub environment: &'static [(&'static str, &'static str)],
    /// A variable with a list of words, and the word to add to it.
    pub debug_flag: Option<(&'static str, &'static str)>,
    /// The source of the machine text.
    pub text_source: TextSource,
    /// The text before the chip in device names, if they contain it: `(RADV ` of `… (RADV NAVI31)`.
    pub chip_prefix: Option<&'static str>,
    /// The chips of all driver versions, oldest first.
    pub families: &'static [ChipFamily],
    /// The dialect of its machine code.
    pub dialect: &'static DisassemblerDialect,
    /// The descriptor layout, if the explorer supports the code.
    pub descriptors: Option<DescriptorLayout>,
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
    pub fn find_family(&self, name: &str) -> Option<&'static ChipFamily> {
        self.families.iter().find(|family| family.all_names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns the chip in a device name, in lower case; it may be missing in our list.
    pub fn chip_in_device_name(&self, device_name: &str) -> Option<String> {
        let (_, rest) = device_name.split_once(self.chip_prefix?)?;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileMethod {
    /// A back end of the driver without hardware.
    NullBackEnd {
        /// The environment variable that selects the chip.
        variable: &'static str,
        /// A string in the library that proves that it has this back end.
        marker: &'static str,
    },
    /// A preloaded library that replaces the kernel device (Mesa's drm-shim).
    Shim {
        library: &'static str,
        /// The environment variable that selects the chip; a shim without one simulates a single chip.
        variable: Option<&'static str>,
        /// True if the library contains the names of its chips.
        has_chip_names: bool,
    },
}

/// The source of a driver's machine text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// `VK_KHR_pipeline_executable_properties`.
    Properties,
    /// Standard output during pipeline creation, shader after shader: NIR, then code.
    StandardOutput {
        /// The prefix of the line with the name of a shader's stage.
        shader_prefix: &'static str,
        /// The prefix of the line where the code begins.
        code_prefix: &'static str,
    },
}

impl TextSource {
    /// Returns the named code forms of a stage's shader (`COMPUTE`, `VERTEX`, `FRAGMENT`) in a driver's
    /// standard output.
    pub fn code_forms<'o>(self, output: &'o str, stage: &str) -> Vec<(&'static str, &'o str)> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipFamily {
    /// Its name in selectors: the latest driver's name in lower case, unique among all vendors.
    pub name: &'static str,
    /// Other names, those of earlier drivers first.
    pub aliases: &'static [&'static str],
    /// The compiler target of its code: `gfx1030`.
    pub target: &'static str,
    /// The value of a shim's variable.
    pub shim_value: &'static str,
}

impl ChipFamily {
    /// Returns all its names, its own first.
    pub fn all_names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Creates a family with one name, which shims accept, too.
pub(crate) const fn single_name_family(name: &'static str, target: &'static str) -> ChipFamily {
    ChipFamily { name, aliases: &[], target, shim_value: name }
}

/// Creates a family with a numeric code for shims.
pub(crate) const fn coded_family(
    name: &'static str,
    others: &'static [&'static str],
    target: &'static str,
    shim: &'static str,
) -> ChipFamily {
    ChipFamily { name, aliases: others, target, shim_value: shim }
}

/// The sizes of descriptors in a set, which are also their alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLayout {
    /// The size of a buffer or texel buffer descriptor.
    pub buffer_bytes: u32,
    /// The size of an image descriptor.
    pub image_bytes: u32,
}
