//! The compilers to SPIR-V: their command lines and results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;

use super::cache::{self, ModuleKey, StoredModule};
use super::error::SourceError;
use super::includes::folder_of;
use super::module_edit::{has_shared_binding, name_local_arrays, rename_entry_point, rename_source};
use super::process::{
    describe_crash, find_program, message_position, program_version, remove_noise, run_to_end,
};
use super::{CompileUnit, ShaderSource, SourceModule};
use crate::files;
use crate::temporary::TemporaryFolder;
use shader_source::scan::blank_comments;
use spirv_reader::ShaderLanguage;

/// A compiler to SPIR-V: a row of `compilers.toml`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    pub program: &'static str,
    #[serde(with = "LanguageWord")]
    pub language: ShaderLanguage,
    /// The arguments, with the placeholders `{in}`, `{out}`, `{entry}` and the names of the stage: `{stage}`,
    /// `{profile}`, `{hlsl}` and `{glslc}`.
    arguments: &'static str,
    /// Other arguments for sources that the compiler rejects: less debug information, with which dxc crashes or makes invalid
    /// modules for correct ones, and later versions of the language.
    #[serde(default)]
    fallback_arguments: Vec<&'static str>,
    /// Additional arguments if registers of several kinds (`t0`, `u0`) share a binding: they shift the
    /// bindings of each kind.
    #[serde(default)]
    shift_flags: &'static str,
    /// Additional arguments for GLSL of OpenGL.
    #[serde(default)]
    opengl_flags: &'static str,
    /// The flags for a definition and for an include folder, if it has a preprocessor.
    preprocessor_flags: Option<[&'static str; 2]>,
    /// The flag for the value of a pipeline-overridable constant.
    override_flag: Option<&'static str>,
    /// How to install it.
    pub install_hint: &'static str,
    /// True if the tests of this project run it.
    #[serde(default)]
    is_tested: bool,
}

/// The messages of glslang about code that OpenGL allows and Vulkan does not.
const OPENGL_ONLY_ERRORS: [&str; 4] = [
    "'non-opaque uniforms outside a block' : not allowed when using GLSL for Vulkan",
    "requires layout(binding=X)",
    "SPIR-V requires location",
    "'atomic counter types' : not allowed when using GLSL for Vulkan",
];

/// [`ShaderLanguage`] in the table of compilers.
#[derive(Deserialize)]
#[serde(remote = "ShaderLanguage")]
enum LanguageWord {
    Glsl,
    Hlsl,
    OpenClC,
    Slang,
    Wgsl,
}

/// The compilers, in order of preference for each language.
pub static COMPILERS: LazyLock<Vec<Compiler>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is a constant, which the tests read")]
    let mut table: BTreeMap<&str, Vec<Compiler>> =
        toml::from_str(include_str!("compilers.toml")).expect("the table of compilers");
    table.remove("compiler").unwrap_or_default()
});

/// Flags of dxc that change what a source means: those of glslang and of slangc for the same; `None` if there is none.
const TRANSLATED_FLAGS: [(&str, Option<&str>, Option<&str>); 5] = [
    ("-enable-16bit-types", Some("--hlsl-enable-16bit-types"), Some("")),
    ("-fvk-use-dx-layout", Some("--hlsl-offsets"), Some("-fvk-use-dx-layout")),
    ("-fvk-use-scalar-layout", None, Some("-fvk-use-scalar-layout")),
    ("-Zpr", None, Some("-matrix-layout-row-major")),
    // Floats are as exact without it.
    ("-Gis", Some(""), Some("")),
];

/// The message of glslang if it adds an empty entry point.
const NO_ENTRY_POINT_MESSAGE: &str = "Entry point not found";

impl Compiler {
    /// Returns true if `--compiler` names this compiler, by its program or a path to it.
    pub fn is_named(&self, name: &str) -> bool {
        Path::new(name).file_stem().is_some_and(|stem| stem == self.program)
    }

    /// Compiles a unit of a source; returns `None` if the compiler is not installed. If registers of
    /// different kinds share a binding, or the source is for OpenGL, a second call has further arguments.
    pub fn compile(
        &self,
        source: &ShaderSource<'_>,
        unit: &CompileUnit,
    ) -> Result<Option<SourceModule>, SourceError> {
        let named = source.compilation.compiler.as_deref();
        let Some(program) = find_program(named.unwrap_or(self.program)) else { return Ok(None) };
        let module = match self.compile_with(&program, source, unit, "") {
            Err(SourceError::Rejected { said, .. })
                if !self.opengl_flags.is_empty()
                    && OPENGL_ONLY_ERRORS.iter().any(|only| said.contains(only)) =>
            {
                return self.compile_with(&program, source, unit, self.opengl_flags).map(Some);
            }
            Err(SourceError::Rejected { .. }) if !self.fallback_arguments.is_empty() => {
                let mut fallback = self.clone();
                fallback.arguments = fallback.fallback_arguments.remove(0);
                return fallback.compile(source, unit);
            }
            compiled => compiled?,
        };
        if !self.shift_flags.is_empty() && has_shared_binding(&module.bytes) {
            return self.compile_with(&program, source, unit, self.shift_flags).map(Some);
        }
        Ok(Some(module))
    }

    /// Compiles a unit with additional flags, or takes the module from the cache.
    fn compile_with(
        &self,
        program: &Path,
        source: &ShaderSource<'_>,
        unit: &CompileUnit,
        extra_flags: &str,
    ) -> Result<SourceModule, SourceError> {
        let file = source.file;
        let to_error = |what: String| SourceError::CompilerFailed {
            file: file.to_owned(),
            compiler: self.program,
            what,
        };
        let flags = self.expand_flags(source, unit, extra_flags)?;
        let mut key = ModuleKey::new();
        key.add_program(program);
        flags.iter().for_each(|flag| key.add(flag.as_bytes()));
        key.add(file.as_bytes());
        key.add(unit.text.as_ref().unwrap_or(&source.text).as_bytes());
        for included in &source.include_tree.files {
            key.add(included.path.as_os_str().as_encoded_bytes());
            key.add(included.text.as_bytes());
        }
        let is_cached = !source.compilation.is_uncached && source.has_known_inputs();
        let module = |stored: StoredModule| SourceModule {
            bytes: stored.bytes,
            language: Some(source.language),
            compiler: Some(stored.compiler),
            entry: unit.entry.clone(),
            unset: source.overrides.unset.clone(),
            ..SourceModule::default()
        };
        if let Some(stored) = is_cached.then(|| cache::read(&key)).flatten() {
            return Ok(module(stored));
        }
        let folder = TemporaryFolder::create();
        let folder = folder.map_err(|error| to_error(error.to_string()))?;
        let (out, input) = (folder.path().join("module.spv"), source.copy_text(unit, folder.path())?);
        let input = input.display().to_string();
        let mut arguments = Vec::new();
        // The output follows the input, and its flag stays with it.
        for flag in self.arguments.split_whitespace().skip_while(|flag| *flag != "{in}") {
            arguments.push(match flag {
                "{in}" => input.clone(),
                "{out}" => out.display().to_string(),
                flag => flag.to_owned(),
            });
        }
        let mut command = Command::new(program);
        command.args(&flags).args(&arguments);
        let Some((status, output)) = run_to_end(command, folder.path()).map_err(to_error)? else {
            return Err(to_error("cannot be started".to_owned()));
        };
        let output = output.replace(&input, file);
        if !status.success() {
            let output = describe_crash(&status, self.program) + &remove_noise(&output, file);
            let position = message_position(&output, file);
            let (file, compiler, others) = (file.to_owned(), self.program, String::new());
            return Err(SourceError::Rejected { file, position, compiler, said: output, others });
        }
        if output.contains(NO_ENTRY_POINT_MESSAGE) {
            let (file, compiler) = (file.to_owned(), self.program);
            let entry = unit.entry.clone().unwrap_or_else(|| "main".to_owned());
            return Err(SourceError::EntryNotCompiled { file, compiler, entry });
        }
        let bytes = files::read_file(&out, files::MAX_SHADER_BYTES);
        let mut bytes = bytes.map_err(|error| to_error(format!("wrote no module: {error}")))?;
        // slangc writes absolute paths.
        let absolute = std::path::absolute(&input).map(|path| path.display().to_string());
        for written in [Some(input), absolute.ok()].into_iter().flatten().filter(|written| written != file) {
            bytes = rename_source(bytes, &written, file);
        }
        if self.program == "clspv" {
            let text = unit.text.as_ref().unwrap_or(&source.text);
            bytes = name_local_arrays(bytes, &blank_comments(text));
        }
        if let Some(entry) = &unit.entry {
            bytes = rename_entry_point(bytes, entry);
        }
        let tested = if self.is_tested { "" } else { " (no test of this project runs it)" };
        let version = program_version(program, folder.path());
        let compiler = format!("{} {version}{tested} {}", self.program, flags.join(" "));
        let stored = StoredModule { bytes, compiler };
        if is_cached {
            cache::write(&key, &stored);
        }
        Ok(module(stored))
    }

    /// Returns the flags of this compiler for one of dxc.
    fn translate_dxc_flag<'f>(&self, file: &str, flag: &'f str) -> Result<&'f str, SourceError> {
        if self.program == "dxc" {
            return Ok(flag);
        }
        // Only dxc knows versions of HLSL.
        if flag.starts_with("-HV ") {
            return Ok("");
        }
        let known = TRANSLATED_FLAGS.iter().find(|(known, ..)| *known == flag);
        let translated = known.and_then(|(_, glslang, slangc)| match self.program {
            "slangc" => *slangc,
            _ => *glslang,
        });
        translated.ok_or_else(|| SourceError::Rejected {
            file: file.to_owned(),
            position: None,
            compiler: self.program,
            said: format!("no flag for `{flag}` of dxc"),
            others: String::new(),
        })
    }

    /// Returns the flags before the input file.
    fn expand_flags(
        &self,
        source: &ShaderSource<'_>,
        unit: &CompileUnit,
        extra_flags: &str,
    ) -> Result<Vec<String>, SourceError> {
        let compilation = &source.compilation;
        let mut flags = Vec::new();
        match self.preprocessor_flags {
            Some([define, include]) => {
                // Definitions were for the command of `--preprocess`, which has its own syntax for them.
                let defines = compilation.defines.iter().filter(|_| !source.is_preprocessed);
                let defines = defines.chain(&unit.defines);
                flags.extend(defines.map(|definition| format!("{define}{definition}")));
                // A copy is compiled in another folder.
                let source_folder: Vec<PathBuf> =
                    source.is_copied(unit).then(|| folder_of(Path::new(source.file))).into_iter().collect();
                let folders = source_folder.iter().chain(&compilation.includes);
                flags.extend(folders.map(|path| format!("{include}{}", path.display())));
            }
            None if compilation.defines.is_empty() && compilation.includes.is_empty()
                || source.is_preprocessed => {}
            None => {
                let (file, program) = (source.file.to_owned(), self.program);
                return Err(SourceError::NoPreprocessor { file, program });
            }
        }
        flags.extend(extra_flags.split_whitespace().map(str::to_owned));
        for flag in &compilation.dxc_flags.others {
            flags.extend(self.translate_dxc_flag(source.file, flag)?.split_whitespace().map(str::to_owned));
        }
        let entry = unit.entry.as_deref().unwrap_or("main");
        for flag in self.arguments.split_whitespace().take_while(|flag| *flag != "{in}") {
            let stage = unit.stage;
            flags.push(
                flag.replace("{entry}", entry)
                    .replace("{stage}", stage.extension)
                    .replace("{profile}", compilation.dxc_flags.profile.as_deref().unwrap_or(stage.profile))
                    .replace("{hlsl}", stage.hlsl)
                    .replace("{glslc}", stage.glslc),
            );
        }
        if let Some(flag) = self.override_flag {
            for (name, value) in source.overrides.iter() {
                // As in WebGPU, the value of a Boolean constant is a number.
                let value = match value {
                    "true" => "1",
                    "false" => "0",
                    number => number,
                };
                flags.extend([flag.to_owned(), format!("{name}={value}")]);
            }
        }
        Ok(flags)
    }
}
