//! Reads user shaders as SPIR-V, or compiles them with the compilers of their languages, with debug lines.
//!
//! The compilers are the user's installed programs, so that the analysed code is the code that the user
//! ships. Every answer contains the compiler's name, version and flags. If a compiler refuses a source, the
//! next installed one is tried. A source of HLSL, Slang or Unity has a module for each entry point. `FILE.foz/HASH`
//! names a module of an archive. A script has the inputs of its shader.

mod alternatives;
mod archives;
mod cache;
mod compilers;
mod definitions;
mod entry_points;
mod error;
mod includes;
mod installed;
mod macros;
mod module_edit;
mod prepare;
mod process;
mod scripts;
mod stage;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compilers::{COMPILERS, Compiler};
use entry_point::AnalysisOptions;
use entry_point::input_place::UnsetOverride;
use entry_point::inputs::merge_options;
use entry_points::EntryPoint;
use includes::{IncludeTree, decode_text, find_folder, folder_of};
use scan::{blank_comments, has_call, has_word};
use shader_source::wgsl::OverrideValues;
use shader_source::{scan, wgsl};
use spirv_reader::{ShaderLanguage, SpirvConstant};
use stage::{COMPUTE, SourceStage};

pub use archives::ArchiveCache;
pub use definitions::{CommandFlags, CompileCommands, parse_definitions};
pub use error::SourceError;
pub use includes::{FileDirective, find_file_directive};
pub use installed::{KnownCompiler, known_compilers};
pub(crate) use module_edit::{simplify_module, without_source_language};
pub use process::find_program;
pub(crate) use process::{describe_crash, run_to_end, run_within, version_line};
pub use stage::name_of_contents;

use crate::files;
use crate::shader::script::DxcFlags;

/// The maximum number of include folders that are found for a source.
const MAX_FOUND_FOLDERS: usize = 16;

/// The first bytes of binary SPIR-V.
pub(crate) const SPIRV_MAGIC: [u8; 4] = [0x03, 0x02, 0x23, 0x07];
/// Extensions of SPIR-V, binary and text.
const MODULE_EXTENSIONS: [&str; 2] = ["spv", "spvasm"];
/// Extensions of languages without a compiler to SPIR-V.
const UNCOMPILED_LANGUAGES: [(&str, &str); 3] =
    [("metal", "the Metal shading language"), ("cu", "CUDA C++"), ("hip", "HIP")];

/// The compiler options for source files.
#[derive(Clone, Debug, Default)]
pub struct Compilation {
    /// The entry point [default: every one].
    pub entry: Option<String>,
    /// Preprocessor definitions, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    pub includes: Vec<PathBuf>,
    /// The compiler; by default, the first installed one that accepts the source.
    pub compiler: Option<String>,
    /// A command line that turns the file into a source.
    pub preprocess: Option<String>,
    /// The flags of each source.
    pub commands: Option<Arc<CompileCommands>>,
    /// Flags of dxc for HLSL, which the other compilers translate.
    pub dxc_flags: DxcFlags,
    /// Values of pipeline-overridable constants of WGSL by name or number.
    pub overrides: Vec<(String, String)>,
    /// True if compiled modules are neither stored nor used again.
    pub is_uncached: bool,
    /// True for a source that tests whether its compiler works.
    pub is_probe: bool,
    /// The subgroup size of the dispatches of a script with several [default: 32].
    pub subgroup_size: Option<u32>,
    /// True if only the modules are used, so that the contents that the dispatches of a script leave are not computed.
    pub ignores_contents: bool,
    /// The archives that were read.
    pub archives: ArchiveCache,
}

/// The SPIR-V of a user shader.
#[derive(Clone, Debug, Default)]
pub struct SourceModule {
    /// The SPIR-V, as binary or text.
    pub bytes: Vec<u8>,
    /// The source language; `None` for SPIR-V.
    pub language: Option<ShaderLanguage>,
    /// The compiler with its version and flags.
    pub compiler: Option<String>,
    /// The function that was compiled, if the source has a module for each entry point.
    pub entry: Option<String>,
    /// Constants without a value.
    pub unset: Vec<UnsetOverride>,
    /// The inputs that the file gives.
    pub given: Option<Box<AnalysisOptions>>,
    /// The lanes of a wave that an attribute of the entry point permits, the preferred number first.
    pub wave_sizes: Vec<u32>,
}

impl SourceModule {
    /// Creates a module that no compiler made.
    pub fn from_spirv(bytes: Vec<u8>) -> SourceModule {
        SourceModule { bytes, ..SourceModule::default() }
    }

    /// Returns options with the inputs that the file gives in addition.
    pub fn with_given_inputs(&self, options: &AnalysisOptions) -> AnalysisOptions {
        let mut options = options.clone();
        match self.wave_sizes[..] {
            [size] => options.subgroup_size = options.subgroup_size.or(Some(size)),
            _ => options.subgroup_sizes.clone_from(&self.wave_sizes),
        }
        // The compiler has set the overrides.
        if self.language == Some(ShaderLanguage::Wgsl) {
            options.named_constants.clear();
            options.specialization.clear();
        }
        match &self.given {
            Some(given) => merge_options(options, given.as_ref().clone()),
            None => options,
        }
    }
}

/// Returns the specialization constants of a module with their declared values: inputs of a pipeline that gives no others.
fn declared_constants(module: &[u8]) -> BTreeMap<u32, u64> {
    let Ok(module) = entry_point::read_module(module) else { return BTreeMap::new() };
    let declared = |(id, (_, constant)): (&u32, &(u32, SpirvConstant))| match constant {
        SpirvConstant::Scalar(bits) => Some((module.decorations_of(*id).specialization?, *bits)),
        _ => None,
    };
    module.constants.iter().filter_map(declared).collect()
}

/// A source with its includes, definitions and override values.
struct ShaderSource<'a> {
    file: &'a str,
    language: ShaderLanguage,
    /// The text, preprocessed if a command for that is given.
    text: String,
    is_preprocessed: bool,
    /// True if the text is that of the file without its byte order mark, which glslang rejects.
    has_byte_order_mark: bool,
    compilation: Compilation,
    include_tree: IncludeTree,
    overrides: OverrideValues,
}

/// A part of a source that is compiled separately.
#[derive(Clone)]
struct CompileUnit {
    /// The entry point, for languages that require its name.
    entry: Option<String>,
    stage: &'static SourceStage,
    /// Additional definitions of this unit.
    defines: Vec<String>,
    /// The text, if it differs from that of the source.
    text: Option<String>,
    /// The lanes of a wave that an attribute permits.
    wave_sizes: Vec<u32>,
}

impl CompileUnit {
    /// Returns the unit of a whole source with all its entry points.
    fn whole(stage: &'static SourceStage, text: Option<String>) -> CompileUnit {
        CompileUnit { entry: None, stage, defines: Vec::new(), text, wave_sizes: Vec::new() }
    }
}

fn file_extension(file: &str) -> &str {
    Path::new(file).extension().and_then(OsStr::to_str).unwrap_or_default()
}

/// Returns the name of a shader in results: that of its file without the extension.
pub fn shader_stem(file: &str) -> &str {
    match (archives::archive_of(file), scripts::script_of(file)) {
        (Some((_, Some(member))), _) => member,
        (_, Some((script, Some(_)))) => &file[script.rfind('/').map_or(0, |end| end + 1)..],
        _ => Path::new(file).file_stem().and_then(OsStr::to_str).unwrap_or(file),
    }
}

/// Returns true if an argument names a shader or a file that contains some. A test variant such as `barrier/MP+cbar@size-33.mesh` does
/// not, unless it is a file.
pub fn is_shader(argument: &str) -> bool {
    if argument.contains('@') && !Path::new(argument).is_file() {
        return false;
    }
    let extension = file_extension(argument);
    MODULE_EXTENSIONS.contains(&extension)
        || scripts::is_script(argument)
        || archives::archive_of(argument).is_some()
        || ShaderLanguage::from_extension(extension).is_some()
        || uncompiled_language(extension).is_some()
}

/// Returns the language of an extension that no compiler translates to SPIR-V.
fn uncompiled_language(extension: &str) -> Option<&'static str> {
    UNCOMPILED_LANGUAGES.iter().find(|(known, _)| *known == extension).map(|(_, language)| *language)
}

/// Returns the names of the modules of an archive, of all or of those that a hash selects, or of the dispatches of a script,
/// for [`load_all`]; for another file its path. If the archive is damaged, the last name gives the error.
pub fn member_names(file: &str, compilation: &Compilation) -> Vec<String> {
    match archives::archive_of(file) {
        Some((archive, member)) => compilation.archives.member_names(archive, member),
        None if scripts::is_script(file) => scripts::run_names(file, compilation),
        None => vec![file.to_owned()],
    }
}

/// Returns true for a script with several dispatches that use subgroups, whose size decides what they leave.
pub fn needs_subgroup_size(file: &str, compilation: &Compilation) -> bool {
    member_names(file, compilation).len() > 1
        && scripts::is_script(file)
        && load_all(file, compilation).iter().flatten().any(|module| {
            let given = module.given.as_deref();
            given.is_some_and(|given| given.subgroup_size.is_some())
        })
}

/// Reads a shader, and compiles it if it is source code. Returns a module for each entry point in languages
/// that compile them one by one, otherwise one module. At least one result is returned.
pub fn load_all(file: &str, compilation: &Compilation) -> Vec<Result<SourceModule, SourceError>> {
    if let Some((archive, member)) = archives::archive_of(file) {
        return vec![compilation.archives.load(archive, member)];
    }
    if let Some((script, number)) = scripts::script_of(file) {
        return match scripts::load_script(script, number, compilation) {
            Ok(modules) => modules.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
    }
    let extension = file_extension(file);
    if MODULE_EXTENSIONS.contains(&extension) {
        let bytes = files::read_file(file.as_ref(), files::MAX_SHADER_BYTES);
        let bytes = bytes.map_err(|error| SourceError::File { file: file.to_owned(), error });
        return vec![bytes.map(SourceModule::from_spirv)];
    }
    compile_all(ShaderSource::read(file, compilation), false)
}

/// Compiles contents like those of a file of this name; see [`load_all`].
pub fn load_contents(
    file: &str,
    contents: &[u8],
    compilation: &Compilation,
) -> Vec<Result<SourceModule, SourceError>> {
    match MODULE_EXTENSIONS.contains(&file_extension(file)) {
        true => vec![Ok(SourceModule::from_spirv(contents.to_vec()))],
        false => compile_all(ShaderSource::from_bytes(file, contents, compilation), true),
    }
}

/// Compiles every unit of a source; `is_text` if no file has its text.
fn compile_all(
    source: Result<ShaderSource<'_>, SourceError>,
    is_text: bool,
) -> Vec<Result<SourceModule, SourceError>> {
    let prepared = source.and_then(|mut source| {
        let mut units = source.retry_with_found_folders(|source| source.compile_units())?;
        if is_text {
            for unit in &mut units {
                unit.text.get_or_insert_with(|| source.text.clone());
            }
        }
        Ok((source, units))
    });
    let (mut source, units) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return vec![Err(error)],
    };
    let mut compile = |unit| source.retry_with_found_folders(|source| source.compile(unit));
    let mut all: Vec<_> = units.iter().map(&mut compile).collect();
    // The scan for entry points ignores `#if`, so some of its functions may not exist.
    if all.iter().any(Result::is_ok) {
        all.retain(|module| !matches!(module, Err(SourceError::EntryNotCompiled { .. })));
    }
    // A missing compiler is reported once for a file.
    let is_missing = |module: &Result<_, _>| matches!(module, Err(SourceError::NoCompiler { .. }));
    all.dedup_by(|next, first| is_missing(next) && is_missing(first));
    all
}

/// Reads a shader with one module, and compiles it if it is source code.
///
/// # Errors
/// If the shader is invalid or has several modules, or a file or compiler is missing.
pub fn load(file: &str, compilation: &Compilation) -> Result<SourceModule, SourceError> {
    let mut all = load_all(file, compilation);
    if let [_, _, ..] = &all[..] {
        if let [first, _, ..] = &member_names(file, compilation)[..] {
            let (file, first, count) = (file.to_owned(), first.clone(), all.len());
            return Err(SourceError::SeveralModules { file, count, first });
        }
        let entries = all.iter().flatten().filter_map(|module| module.entry.clone()).collect();
        return Err(no_entry_point_error(file, None, entries));
    }
    all.pop().unwrap_or_else(|| Err(no_entry_point_error(file, None, Vec::new())))
}

/// Creates the error for a missing or ambiguous entry point; `requested` is the one that was named.
fn no_entry_point_error(file: &str, requested: Option<&str>, entries: Vec<String>) -> SourceError {
    let listed = entries.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let what = match (requested, entries.first()) {
        (Some(wanted), Some(first)) => {
            format!("no entry point `{wanted}`; expected one of {listed}: pass `--entry {first}`")
        }
        (Some(wanted), None) => format!("no function `{wanted}`; expected an entry point of the source"),
        (None, Some(first)) => {
            format!("several entry points: {listed}; expected one: pass `--entry {first}`")
        }
        (None, None) => {
            "no entry point; expected a function with [numthreads] or [shader(\"…\")], or `main`: \
                         name one with `--entry NAME`"
                .to_owned()
        }
    };
    SourceError::NoEntryPoint { file: file.to_owned(), what }
}

/// Compiles a changed text of a source as the file was compiled, for one entry point if it has a module for
/// each. Returns `None` if the text is not valid, or differs from the text that the compiler reads.
pub fn compile_edited_text(
    file: &str,
    text: &str,
    entry: Option<&str>,
    compilation: &Compilation,
) -> Option<Vec<u8>> {
    let mut source = ShaderSource::read(file, compilation).ok().filter(|source| !source.is_preprocessed)?;
    source.text = decode_text(text.as_bytes()).0;
    source.update_include_tree();
    let mut units = source.retry_with_found_folders(|source| source.compile_units()).ok()?;
    units.retain(|unit| unit.entry.as_deref() == entry);
    let [unit] = &mut units[..] else { return None };
    // The text of a unit is written where the compiler reads it.
    unit.text.get_or_insert_with(|| source.text.clone());
    Some(source.retry_with_found_folders(|source| source.compile(unit)).ok()?.bytes)
}

/// Returns the text of a source that fixes may change; `None` for SPIR-V and for preprocessed sources.
pub fn read_editable_text(file: &str, compilation: &Compilation) -> Option<String> {
    let extension = file_extension(file);
    let is_module = MODULE_EXTENSIONS.contains(&extension)
        || scripts::is_script(file)
        || archives::archive_of(file).is_some();
    let is_source = !is_module && compilation.preprocess.is_none();
    is_source.then(|| files::read_text(file.as_ref(), files::MAX_SHADER_BYTES).ok()).flatten()
}

impl ShaderSource<'_> {
    /// Reads a source and the files that it includes, and expands it with the command for that.
    fn read<'a>(file: &'a str, compilation: &Compilation) -> Result<ShaderSource<'a>, SourceError> {
        let to_error = |error| SourceError::File { file: file.to_owned(), error };
        let bytes = files::read_file(file.as_ref(), files::MAX_SHADER_BYTES).map_err(to_error)?;
        ShaderSource::from_bytes(file, &bytes, compilation)
    }

    /// Prepares the contents of a file; see [`ShaderSource::read`].
    fn from_bytes<'a>(
        file: &'a str,
        bytes: &[u8],
        compilation: &Compilation,
    ) -> Result<ShaderSource<'a>, SourceError> {
        let extension = file_extension(file);
        let Some(of_extension) = ShaderLanguage::from_extension(extension) else {
            let (known, file) = (uncompiled_language(extension), file.to_owned());
            return Err(match known {
                Some(language) => SourceError::Uncompiled { file, language },
                None => SourceError::UnknownExtension { file },
            });
        };
        if bytes.starts_with(&SPIRV_MAGIC) {
            return Err(SourceError::BinaryModule { file: file.to_owned() });
        }
        let mut compilation = compilation.clone();
        if let Some(flags) =
            compilation.commands.as_ref().and_then(|commands| commands.flags_of(Path::new(file)))
        {
            let CommandFlags { defines, includes, entry } = flags.clone();
            compilation.defines.splice(0..0, defines);
            compilation.includes.extend(includes);
            compilation.entry = compilation.entry.or(entry);
        }
        let (text, is_preprocessed) = match &compilation.preprocess {
            Some(command) => {
                let failed = |(what, said)| {
                    let (file, command) = (file.to_owned(), command.clone());
                    SourceError::Preprocess { file, command, what, said }
                };
                (process::run_preprocessor(file, command, &compilation.defines).map_err(failed)?, true)
            }
            None => (decode_text(bytes).0, false),
        };
        let has_byte_order_mark = decode_text(bytes).1;
        let plain = blank_comments(&text);
        let language = stage::decide_language(of_extension, &plain)
            .map_err(|marks| SourceError::wrong_language(file, of_extension, &marks))?;
        let (overrides, include_tree) = if language == ShaderLanguage::Wgsl {
            let overrides = OverrideValues::from_source(&plain, &compilation.overrides);
            if let Some((name, known)) = overrides.unknown {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(SourceError::UnknownOverride { file: file.to_owned(), name, known });
            }
            (overrides, IncludeTree::default())
        } else {
            let include_tree = IncludeTree::read(Path::new(file), &text, &compilation.includes);
            (OverrideValues::default(), include_tree)
        };
        let mut source = ShaderSource {
            file,
            language,
            text,
            is_preprocessed,
            has_byte_order_mark,
            compilation,
            include_tree,
            overrides,
        };
        source.note_missing_definitions();
        Ok(source)
    }

    /// Adds the definitions that the source expects to the constants without a value.
    fn note_missing_definitions(&mut self) {
        if self.language != ShaderLanguage::Wgsl {
            let whole = self.full_text();
            self.overrides.unset = alternatives::missing_definitions(&whole, &self.compilation.defines);
        }
    }

    /// Reads the included files again, after a change of the text or of the include folders.
    fn update_include_tree(&mut self) {
        if self.language != ShaderLanguage::Wgsl {
            self.include_tree =
                IncludeTree::read(Path::new(self.file), &self.text, &self.compilation.includes);
            self.note_missing_definitions();
        }
    }

    /// Repeats an attempt with each found folder of a missing include file.
    fn retry_with_found_folders<T>(
        &mut self,
        attempt: impl Fn(&Self) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        for _ in 0..MAX_FOUND_FOLDERS {
            let header = match attempt(self) {
                Err(SourceError::MissingInclude { header, .. }) => header,
                result => return result,
            };
            let folder = find_folder(Path::new(self.file), &header);
            let Some(folder) = folder.filter(|folder| !self.compilation.includes.contains(folder)) else {
                break;
            };
            self.compilation.includes.push(folder);
            self.update_include_tree();
        }
        attempt(self)
    }

    /// Returns true if the files that the scan found are all that a compiler can read.
    fn has_known_inputs(&self) -> bool {
        let imports =
            |text: &str| ["import", "__import", "__include"].iter().any(|word| has_word(text, word));
        let has_import = self.language == ShaderLanguage::Slang && imports(&self.text);
        !self.include_tree.has_macro && !has_import
    }

    /// Returns true if a copy is compiled: the text of a unit is not that of the file, or its path is not ASCII, which
    /// glslang writes wrongly into the module.
    fn is_copied(&self, unit: &CompileUnit) -> bool {
        self.is_preprocessed || self.has_byte_order_mark || unit.text.is_some() || !self.file.is_ascii()
    }

    /// Copies the text of a unit into a folder if necessary. Returns the path of the text to compile.
    fn copy_text(&self, unit: &CompileUnit, folder: &Path) -> Result<PathBuf, SourceError> {
        if !self.is_copied(unit) {
            return Ok(PathBuf::from(self.file));
        }
        let file = Path::new(self.file);
        let path = match file.file_name().unwrap_or_default() {
            name if name.is_ascii() => folder.join(name),
            _ => folder.join("source").with_extension(file.extension().unwrap_or_default()),
        };
        let to_error = |error| SourceError::File { file: path.display().to_string(), error };
        fs::write(&path, unit.text.as_ref().unwrap_or(&self.text)).map_err(to_error)?;
        Ok(path)
    }

    /// Returns the text of the source and of the files that it includes, without comments.
    fn full_text(&self) -> String {
        let included = self.include_tree.files.iter().map(|file| blank_comments(&file.text));
        included.fold(blank_comments(&self.text), |all, text| all + "\n" + &text)
    }

    /// Returns the parts of the source that are compiled separately.
    fn compile_units(&self) -> Result<Vec<CompileUnit>, SourceError> {
        let plain = blank_comments(&self.text);
        match self.language {
            ShaderLanguage::OpenClC | ShaderLanguage::Wgsl => Ok(vec![CompileUnit::whole(COMPUTE, None)]),
            ShaderLanguage::Glsl => self.glsl_units(&plain),
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => self.entry_point_units(),
        }
    }

    fn glsl_units(&self, plain: &str) -> Result<Vec<CompileUnit>, SourceError> {
        let sections = prepare::stage_sections(&self.text);
        if !sections.is_empty() {
            let section = |section: prepare::StageSection| {
                let text = prepare::prepare_glsl(&section.text, &blank_comments(&section.text));
                CompileUnit::whole(section.stage, Some(text.unwrap_or(section.text)))
            };
            return Ok(sections.into_iter().map(section).collect());
        }
        let whole = self.full_text();
        let is_complete = self.include_tree.missing.is_empty() && !self.include_tree.has_macro;
        if is_complete && !has_word(&whole, "main") {
            let what = "no function `main`; expected a shader, not a file for others to include".to_owned();
            return Err(SourceError::NoEntryPoint { file: self.file.to_owned(), what });
        }
        let stage = stage::stage_of_file(self.file, &whole).unwrap_or(COMPUTE);
        Ok(vec![CompileUnit::whole(stage, prepare::prepare_glsl(&self.text, plain))])
    }

    /// Returns the entry points of a source whose compilers take one at a time.
    fn entry_point_units(&self) -> Result<Vec<CompileUnit>, SourceError> {
        let defines = self.compilation.defines.iter();
        let defines: String = defines.map(|one| format!("#define {}\n", one.replacen('=', " ", 1))).collect();
        if let Some(at) = entry_points::impossible_wave_size(&blank_comments(&self.text), &defines) {
            let before = &self.text[..at];
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
            return Err(SourceError::WaveSize { file: self.file.to_owned(), line, column });
        }
        let whole = defines + &self.full_text();
        let mut entries = entry_points::unity_kernels(&whole);
        if entries.is_empty() {
            entries = entry_points::find_annotated(&whole);
        }
        if entries.is_empty() {
            entries = entry_points::find_conventional(&whole, stage::stage_of_file(self.file, ""));
        }
        if let Some(requested) = &self.compilation.entry {
            let known = entries.iter().map(|entry| entry.name.clone()).collect();
            entries.retain(|entry| entry.name == *requested);
            if entries.is_empty() {
                if !has_call(&whole, requested) {
                    return Err(no_entry_point_error(self.file, Some(requested), known));
                }
                let stage = stage::stage_of_file(self.file, "").unwrap_or(COMPUTE);
                entries.push(EntryPoint::new(requested, stage));
            }
        }
        if entries.is_empty() {
            let missing = || self.missing_include(|_| true);
            return Err(missing().unwrap_or_else(|| no_entry_point_error(self.file, None, Vec::new())));
        }
        let unit = |entry: EntryPoint| {
            let EntryPoint { name, stage, defines, wave_sizes } = entry;
            CompileUnit { entry: Some(name), stage, defines, text: None, wave_sizes }
        };
        Ok(entries.into_iter().map(unit).collect())
    }

    /// Compiles a unit with the first compiler that accepts it.
    fn compile(&self, unit: &CompileUnit) -> Result<SourceModule, SourceError> {
        let file = || self.file.to_owned();
        let of_language = || COMPILERS.iter().filter(|compiler| compiler.language == self.language);
        let named = self.compilation.compiler.as_deref();
        let is_chosen = |compiler: &&Compiler| named.is_none_or(|name| compiler.is_named(name));
        if let Some(program) = named.filter(|_| !of_language().any(|compiler| is_chosen(&compiler))) {
            let program = program.to_owned();
            let known: Vec<String> =
                of_language().map(|compiler| format!("`{}`", compiler.program)).collect();
            let known = known.join(" or ");
            return Err(SourceError::NotOfLanguage { file: file(), program, known });
        }
        let (mut first_error, mut others) = (None, Vec::new());
        for compiler in of_language().filter(is_chosen) {
            let stripped = (compiler.program == "naga")
                .then(|| wgsl::strip_unsupported_directives(&self.text, &blank_comments(&self.text)))
                .flatten();
            let unit = &CompileUnit { text: stripped.or_else(|| unit.text.clone()), ..unit.clone() };
            match compiler.compile(self, unit) {
                Ok(Some(module)) => {
                    return Ok(SourceModule { wave_sizes: unit.wave_sizes.clone(), ..module });
                }
                Ok(None) => {}
                // Another compiler may accept the source: dxc supports newer HLSL, and tint more of WGSL.
                Err(wrong @ (SourceError::Rejected { .. } | SourceError::EntryNotCompiled { .. })) => {
                    match self.find_compiler_problem(compiler, &wrong) {
                        Some(_) if named.is_none() => continue,
                        Some(what) => {
                            let (file, compiler) = (file(), compiler.program);
                            return Err(SourceError::CompilerFailed { file, compiler, what });
                        }
                        None => {}
                    }
                    match first_error {
                        Some(_) => others.push(wrong.describe_rejection()),
                        None => first_error = Some(wrong),
                    }
                }
                Err(other) => return Err(other),
            }
        }
        match first_error {
            Some(SourceError::Rejected { file, position, compiler, said, .. }) => {
                let lowercase = said.to_lowercase();
                let is_named = |header: &str| {
                    lowercase.contains("include") && said.contains(header)
                        || said.contains(&format!("'{header}' file not found"))
                };
                if let Some(missing) = self.missing_include(is_named) {
                    return Err(missing);
                }
                let others = others.concat();
                Err(SourceError::Rejected { file, position, compiler, said, others })
            }
            Some(other) => Err(other),
            None => {
                let wanted: Vec<String> = of_language()
                    .filter(is_chosen)
                    .map(|compiler| format!("`{}` ({})", compiler.program, compiler.install_hint))
                    .collect();
                let what = if named.is_some() { "not installed" } else { "no compiler for it is installed" };
                Err(SourceError::NoCompiler {
                    file: file(),
                    what: format!("{what}: {}", wanted.join(" or ")),
                })
            }
        }
    }

    /// Returns why a compiler rejects every source: some packages of tint write no SPIR-V.
    fn find_compiler_problem(&self, compiler: &Compiler, wrong: &SourceError) -> Option<String> {
        // Its message is about `--format spirv`.
        let is_about_format = matches!(wrong, SourceError::Rejected { said, .. } if said.contains("spirv"));
        if compiler.program != "tint" || self.compilation.is_probe || !is_about_format {
            return None;
        }
        let program = self.compilation.compiler.as_deref().unwrap_or(compiler.program);
        let problem = installed::find_problem(program, self.language)?;
        Some(format!("compiles no shader: {problem}; expected {}", compiler.install_hint))
    }

    /// Returns the error for the first missing include file that the compiler's message names.
    fn missing_include(&self, is_named: impl Fn(&str) -> bool) -> Option<SourceError> {
        let missing = self.include_tree.missing.iter().find(|missing| is_named(&missing.header))?;
        let source_folders = [folder_of(&missing.includer), folder_of(Path::new(self.file))];
        let mut searched: Vec<String> = Vec::new();
        for folder in source_folders.iter().chain(&self.compilation.includes) {
            let folder = folder.display().to_string();
            if !searched.contains(&folder) {
                searched.push(folder);
            }
        }
        Some(SourceError::MissingInclude {
            file: self.file.to_owned(),
            includer: missing.includer.clone(),
            line: missing.line,
            header: missing.header.clone(),
            searched: searched.join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_a_test_is_not_a_shader() {
        assert!(is_shader("a.mesh"));
        assert!(!is_shader("barrier/MP+cbar@size-33.mesh"));
    }
}
