//! Shader modules: SPIR-V, or a source that an installed compiler turns into it.

use std::path::{Path, PathBuf};

use analysis::{placed_refusal_text, refusal_record};
use campaign::Failure;
use campaign::shader::source::{Compilation, SourceError, SourceModule, load_all, load_contents};
use entry_point::input_place::OverrideRole;
use entry_point::source_location;
use lint::Lint;
use results::wire::{FindingPlace, FindingRecord, RejectedLine};
use spirv_reader::{ShaderLanguage, SourcePosition, SpirvModule};

use super::error::{Error, ErrorKind};

/// Options for compiling shader sources.
///
/// ```
/// use vk_litmus::{CompileOptions, ErrorKind, ShaderModule};
///
/// let options = CompileOptions::new()
///     .entry("main")
///     .define("TILE", Some("16"))
///     .include("shaders/include")
///     .compiler("glslangValidator")
///     .override_constant("tile", "16")
///     .without_cache();
/// // Without the compiler or the file, the error is one of the environment or of the input.
/// let error = ShaderModule::load("missing.comp", &options).remove(0).err().ok_or("compiled")?;
/// assert!(matches!(error.kind(), ErrorKind::Input | ErrorKind::Environment));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    pub(super) compilation: Compilation,
}

impl CompileOptions {
    /// Creates options with no definitions and the first installed compiler.
    pub fn new() -> CompileOptions {
        CompileOptions::default()
    }

    /// Compiles one entry point of languages that name it [default: every one].
    #[must_use]
    pub fn entry(mut self, name: &str) -> CompileOptions {
        self.compilation.entry = Some(name.to_owned());
        self
    }

    /// Adds a preprocessor definition.
    #[must_use]
    pub fn define(mut self, name: &str, value: Option<&str>) -> CompileOptions {
        let value = value.map_or(String::new(), |value| format!("={value}"));
        self.compilation.defines.push(format!("{name}{value}"));
        self
    }

    /// Adds a folder of include files; the folder of the source is always searched.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> CompileOptions {
        self.compilation.includes.push(folder.into());
        self
    }

    /// Sets the compiler by its program name, such as `glslangValidator`, `dxc`, `slangc` or `naga`.
    #[must_use]
    pub fn compiler(mut self, program: &str) -> CompileOptions {
        self.compilation.compiler = Some(program.to_owned());
        self
    }

    /// Sets a pipeline-overridable constant of WGSL by name or number.
    #[must_use]
    pub fn override_constant(mut self, name: &str, value: &str) -> CompileOptions {
        self.compilation.overrides.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Compiles each time, instead of using a stored module of the same source and flags.
    #[must_use]
    pub fn without_cache(mut self) -> CompileOptions {
        self.compilation.is_uncached = true;
        self
    }
}

/// A shader as SPIR-V, with the source positions of its debug lines.
///
/// ```
/// use vk_litmus::{CompileOptions, ShaderModule};
///
/// let (file, options) = ("../../ci/action/race.spvasm", CompileOptions::new());
/// let contents = std::fs::read(file)?;
/// assert_eq!(ShaderModule::load_contents("race.spvasm", &contents, &options).len(), 1);
/// for module in ShaderModule::load(file, &options) {
///     let module = module?;
///     assert_eq!((module.compiler(), module.assumed_constants().count()), (None, 0));
///     assert_eq!(module.entry_points()?, ["main"]);
///     assert!(module.lint()?.is_empty());
/// }
/// assert!(ShaderModule::from_spirv("cut", *b"\x03\x02\x23\x07").entry_points().is_err());
/// let module = ShaderModule::from_spirv("race", contents).compiled_from_wgsl("naga");
/// assert_eq!(module.compiler(), Some("naga"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShaderModule {
    pub(super) file: String,
    pub(super) source: SourceModule,
    /// The options that it was compiled with, if it was a source.
    pub(super) compilation: Option<Compilation>,
}

impl ShaderModule {
    /// Creates a module from binary SPIR-V or assembly text; `file` is its name in answers.
    ///
    /// The module is parsed later: the first analysis of a malformed module returns an error.
    pub fn from_spirv(file: &str, module: impl Into<Vec<u8>>) -> ShaderModule {
        let source = SourceModule::from_spirv(module.into());
        ShaderModule { file: file.to_owned(), source, compilation: None }
    }

    /// States that a compiler made the module of WGSL: answers are those of WGSL, too.
    #[must_use]
    pub fn compiled_from_wgsl(mut self, compiler: &str) -> ShaderModule {
        self.source.language = Some(ShaderLanguage::Wgsl);
        self.source.compiler = Some(compiler.to_owned());
        self
    }

    /// Reads a shader file, and compiles it if it is a source: GLSL by the extension of its stage, `.hlsl`,
    /// `.slang` or `.wgsl`; `.spv` and `.spvasm` are read unchanged.
    ///
    /// A source of HLSL or Slang has a module for each entry point, any other file one. `FILE.foz/HASH` is a module of
    /// an archive of Fossilize, with the entry point and the constants of its pipeline. At least one result
    /// is returned. Compilers are the installed programs; each runs with a time limit.
    pub fn load(file: impl AsRef<Path>, options: &CompileOptions) -> Vec<Result<ShaderModule, Error>> {
        let file = file.as_ref().to_string_lossy().into_owned();
        ShaderModule::from_results(&file, load_all(&file, &options.compilation), options)
    }

    /// Compiles contents like those of a file of this name; see [`ShaderModule::load`].
    pub fn load_contents(
        file: &str,
        contents: &[u8],
        options: &CompileOptions,
    ) -> Vec<Result<ShaderModule, Error>> {
        ShaderModule::from_results(file, load_contents(file, contents, &options.compilation), options)
    }

    fn from_results(
        file: &str,
        modules: Vec<Result<SourceModule, SourceError>>,
        options: &CompileOptions,
    ) -> Vec<Result<ShaderModule, Error>> {
        let compilation = &options.compilation;
        let module = |module| match module {
            Ok(source) => {
                Ok(ShaderModule { file: file.to_owned(), source, compilation: Some(compilation.clone()) })
            }
            Err(error) => Err(source_error(file, &error)),
        };
        modules.into_iter().map(module).collect()
    }

    /// Returns the compiler with its version and flags; `None` for SPIR-V.
    pub fn compiler(&self) -> Option<&str> {
        self.source.compiler.as_deref()
    }

    /// Returns the pipeline-overridable constants that no option sets, with their assumed values.
    pub fn assumed_constants(&self) -> impl Iterator<Item = (&str, &str)> {
        let constants =
            self.source.unset.iter().filter(|unset| {
                !matches!(unset.value.role, OverrideRole::Definition | OverrideRole::Default)
            });
        constants.map(|unset| (unset.name.as_str(), unset.value.value.as_str()))
    }

    /// Returns the names of the entry points.
    ///
    /// # Errors
    /// If the module is malformed.
    pub fn entry_points(&self) -> Result<Vec<String>, Error> {
        Ok(self.read()?.entry_points().into_iter().map(str::to_owned).collect())
    }

    /// Returns the rules that the shader breaks in every dispatch: `vk-litmus lint`.
    ///
    /// # Errors
    /// If the module is malformed.
    pub fn lint(&self) -> Result<Vec<FindingRecord>, Error> {
        let module = self.read()?;
        if module.has_no_entry_point() {
            let failure = Failure::input_message(format!("{}: the module has no entry point", self.file));
            return Err(Error::for_file(&self.file, failure).with_kind(ErrorKind::NoEntryPoint));
        }
        // The entry point that a pipeline of an archive names.
        let entry = self.source.given.as_ref().and_then(|given| given.entry.as_deref());
        if entry.is_some_and(|entry| !module.entry_points().contains(&entry))
            && let Err(missing) = module.find_entry(entry)
        {
            let failure = Failure::input_message(format!("{}: {missing}", self.file));
            return Err(Error::for_file(&self.file, failure));
        }
        Ok(lint::lint(&module).iter().map(|lint| lint_finding(&self.file, &module, lint)).collect())
    }

    pub(super) fn read(&self) -> Result<SpirvModule, Error> {
        entry_point::read_module(&self.source.bytes).map_err(|refusal| {
            let failure = Failure::input_message(placed_refusal_text(&self.file, &refusal));
            let placed = Error::with_position(refusal_record(&self.file, None, &refusal), failure);
            if matches!(refusal.place, SourcePosition::Line(_)) { placed } else { placed.without_position() }
        })
    }
}

fn lint_finding(file: &str, module: &SpirvModule, lint: &Lint) -> FindingRecord {
    let (file, line) = source_location(file, module, lint.at.line, lint.at.place);
    FindingRecord::new(
        &format!("lint:{}", lint.rule.name()),
        format!("{} ({})", lint.message, lint.rule.clause()),
        vec![FindingPlace {
            file: Some(file),
            line,
            instruction: None,
            invocation: None,
            workgroup: None,
            access: None,
        }],
    )
}

pub(super) fn source_error(file: &str, error: &SourceError) -> Error {
    let position = error.position();
    let (line, column) = position.unwrap_or((1, 1));
    let record = RejectedLine { file: file.to_owned(), error: error.to_string(), line, column };
    let placed = Error::with_position(record, error.to_failure()).with_cause(error.short_cause());
    let placed = if position.is_some() { placed } else { placed.without_position() };
    match error {
        SourceError::NoEntryPoint { .. } => placed.with_kind(ErrorKind::NoEntryPoint),
        _ => placed,
    }
}
