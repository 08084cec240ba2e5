//! The compilers to SPIR-V: their command lines and results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{self, ModuleKey, StoredModule};
use super::error::SourceError;
use super::includes::folder_of;
use super::module_edit::{has_shared_binding, rename_entry_point, rename_source};
use super::process::{cleaned, find_program, place, run_to_end, version};
use super::stage::ShaderLanguage;
use super::{CompileUnit, ShaderSource, SourceModule};

/// A compiler to SPIR-V.
pub struct Compiler {
    /// The executable.
    pub program: &'static str,
    /// The language.
    pub language: ShaderLanguage,
    /// The arguments, with the placeholders `{in}`, `{out}`, `{entry}` and the names of the stage: `{stage}`,
    /// `{profile}`, `{hlsl}` and `{glslc}`.
    flags: &'static [&'static str],
    /// Additional arguments if registers of several kinds (`t0`, `u0`) share a binding: they shift the
    /// bindings of each kind.
    apart: &'static [&'static str],
    /// Additional arguments for GLSL of OpenGL.
    opengl: &'static [&'static str],
    /// The flags for a definition and for an include folder, if it has a preprocessor.
    preprocessor: Option<[&'static str; 2]>,
    /// The flag for the value of a pipeline-overridable constant.
    override_flag: Option<&'static str>,
    /// How to install it.
    pub install: &'static str,
    /// True if the tests of this project run it.
    tested: bool,
}

/// The arguments of glslang for GLSL.
const GLSLANG: &[&str] = &["-V", "--target-env", "vulkan1.3", "-S", "{stage}", "-g", "{in}", "-o", "{out}"];
const GLSLANG_HLSL: &[&str] =
    &["-V", "-D", "--target-env", "vulkan1.3", "-S", "{stage}", "-e", "{entry}", "-g", "{in}", "-o", "{out}"];
const SLANGC: &[&str] = &[
    "-target",
    "spirv",
    "-profile",
    "spirv_1_5",
    "-stage",
    "{hlsl}",
    "-entry",
    "{entry}",
    "-g",
    "{in}",
    "-o",
    "{out}",
];
const SLANGC_HLSL: &[&str] = &[
    "-lang",
    "hlsl",
    "-target",
    "spirv",
    "-profile",
    "spirv_1_5",
    "-stage",
    "{hlsl}",
    "-entry",
    "{entry}",
    "-g",
    "{in}",
    "-o",
    "{out}",
];

/// The first binding of each kind of HLSL register, if kinds share numbers: 0 for constants, 100 for textures
/// and read-only buffers (`t`), 200 for samplers, 300 for writable resources (`u`).
const GLSLANG_APART: &[&str] = &[
    "--hlsl-iomap",
    "--auto-map-bindings",
    "--shift-texture-binding",
    "100",
    "--shift-sampler-binding",
    "200",
    "--shift-UAV-binding",
    "300",
];
const DXC_APART: &[&str] =
    &["-fvk-t-shift", "100", "all", "-fvk-s-shift", "200", "all", "-fvk-u-shift", "300", "all"];

/// Collects uniforms outside of blocks in a block, and separates the bindings of each kind of resource, which OpenGL
/// counts separately: 0 for uniform blocks, 100 for textures, 200 for images, 300 for storage buffers.
const GLSLANG_OPENGL: &[&str] = &[
    "-R",
    "--auto-map-bindings",
    "--auto-map-locations",
    "--shift-sampler-binding",
    "100",
    "--shift-texture-binding",
    "100",
    "--shift-image-binding",
    "200",
    "--shift-ssbo-binding",
    "300",
];
/// The messages of glslang about code that OpenGL allows and Vulkan does not.
const OPENGL_ONLY: [&str; 4] = [
    "'non-opaque uniforms outside a block' : not allowed when using GLSL for Vulkan",
    "requires layout(binding=X)",
    "SPIR-V requires location",
    "'atomic counter types' : not allowed when using GLSL for Vulkan",
];

/// The flags of most preprocessors.
const PREPROCESSOR: Option<[&str; 2]> = Some(["-D", "-I"]);

/// The compilers, in order of preference for each language.
pub const COMPILERS: [Compiler; 10] = [
    Compiler {
        program: "glslangValidator",
        language: ShaderLanguage::Glsl,
        flags: GLSLANG,
        apart: &[],
        opengl: GLSLANG_OPENGL,
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the package glslang-tools, or the Vulkan SDK",
        tested: true,
    },
    Compiler {
        program: "glslang",
        language: ShaderLanguage::Glsl,
        flags: GLSLANG,
        apart: &[],
        opengl: GLSLANG_OPENGL,
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "glslc",
        language: ShaderLanguage::Glsl,
        flags: &["--target-env=vulkan1.3", "-fshader-stage={glslc}", "-g", "{in}", "-o", "{out}"],
        apart: &[],
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the package glslc, or the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "glslangValidator",
        language: ShaderLanguage::Hlsl,
        flags: GLSLANG_HLSL,
        apart: GLSLANG_APART,
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the package glslang-tools, or the Vulkan SDK",
        tested: true,
    },
    Compiler {
        program: "glslang",
        language: ShaderLanguage::Hlsl,
        flags: GLSLANG_HLSL,
        apart: GLSLANG_APART,
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "slangc",
        language: ShaderLanguage::Hlsl,
        flags: SLANGC_HLSL,
        apart: DXC_APART,
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "dxc",
        language: ShaderLanguage::Hlsl,
        flags: &[
            "-spirv",
            "-fspv-target-env=vulkan1.3",
            "-T",
            "{profile}",
            "-E",
            "{entry}",
            "-Zi",
            "-fspv-debug=vulkan-with-source",
            "{in}",
            "-Fo",
            "{out}",
        ],
        apart: DXC_APART,
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "slangc",
        language: ShaderLanguage::Slang,
        flags: SLANGC,
        apart: &[],
        opengl: &[],
        preprocessor: PREPROCESSOR,
        override_flag: None,
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "naga",
        language: ShaderLanguage::Wgsl,
        flags: &["-g", "{in}", "{out}"],
        apart: &[],
        opengl: &[],
        preprocessor: None,
        override_flag: Some("--override"),
        install: "`cargo install naga-cli`",
        tested: true,
    },
    Compiler {
        program: "tint",
        language: ShaderLanguage::Wgsl,
        flags: &["--format", "spirv", "{in}", "-o", "{out}"],
        apart: &[],
        opengl: &[],
        preprocessor: None,
        override_flag: Some("--overrides"),
        install: "Dawn",
        tested: false,
    },
];

/// The message of glslang if it adds an empty entry point.
const NO_ENTRY_POINT: &str = "Entry point not found";

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
        let named = source.given.compiler.as_deref();
        let Some(program) = find_program(named.unwrap_or(self.program)) else { return Ok(None) };
        let module = match self.compile_with(&program, source, unit, &[]) {
            Err(SourceError::Wrong { said, .. })
                if !self.opengl.is_empty() && OPENGL_ONLY.iter().any(|only| said.contains(only)) =>
            {
                return self.compile_with(&program, source, unit, self.opengl).map(Some);
            }
            compiled => compiled?,
        };
        if !self.apart.is_empty() && has_shared_binding(&module.bytes) {
            return self.compile_with(&program, source, unit, self.apart).map(Some);
        }
        Ok(Some(module))
    }

    /// Compiles a unit with additional flags, or takes the module from the cache.
    fn compile_with(
        &self,
        program: &Path,
        source: &ShaderSource<'_>,
        unit: &CompileUnit,
        besides: &[&str],
    ) -> Result<SourceModule, SourceError> {
        let file = source.file;
        let failed =
            |what: String| SourceError::Failed { file: file.to_owned(), compiler: self.program, what };
        let flags = self.flags(source, unit, besides)?;
        let mut key = ModuleKey::new();
        key.add_program(program);
        flags.iter().for_each(|flag| key.add(flag.as_bytes()));
        key.add(file.as_bytes());
        key.add(unit.text.as_ref().unwrap_or(&source.text).as_bytes());
        for included in &source.tree.files {
            key.add(included.path.as_os_str().as_encoded_bytes());
            key.add(included.text.as_bytes());
        }
        let is_cached = source.given.is_cached && source.is_closed();
        let module = |stored: StoredModule| SourceModule {
            bytes: stored.bytes,
            compiler: Some(stored.compiler),
            entry: unit.entry.clone(),
            unset: source.overrides.unset.clone(),
        };
        if let Some(stored) = is_cached.then(|| cache::read(&key)).flatten() {
            return Ok(module(stored));
        }
        let folder = tempfile::Builder::new().prefix("vk-litmus-").tempdir();
        let folder = folder.map_err(|error| failed(error.to_string()))?;
        let (out, input) = (folder.path().join("module.spv"), source.write(unit, folder.path())?);
        let input = input.display().to_string();
        let mut arguments = Vec::new();
        // The output follows the input, and its flag stays with it.
        let mut rest = self.flags.iter().skip_while(|flag| **flag != "{in}");
        for flag in rest.by_ref() {
            arguments.push(match *flag {
                "{in}" => input.clone(),
                "{out}" => out.display().to_string(),
                flag => flag.to_owned(),
            });
        }
        let mut command = Command::new(program);
        command.args(&flags).args(&arguments);
        let Some((status, said)) = run_to_end(command, folder.path()).map_err(failed)? else {
            return Err(failed("cannot be started".to_owned()));
        };
        let said = said.replace(&input, file);
        if !status.success() {
            let said = cleaned(&said, file);
            let (line, column) = place(&said, file).unwrap_or((1, 1));
            let (file, compiler) = (file.to_owned(), self.program);
            return Err(SourceError::Wrong { file, line, column, compiler, said, others: String::new() });
        }
        if said.contains(NO_ENTRY_POINT) {
            let (file, compiler) = (file.to_owned(), self.program);
            let entry = unit.entry.clone().unwrap_or_else(|| "main".to_owned());
            return Err(SourceError::EntryNotCompiled { file, compiler, entry });
        }
        let mut bytes = fs::read(out).map_err(|error| failed(format!("wrote no module: {error}")))?;
        if input != file {
            bytes = rename_source(bytes, &input, file);
        }
        if let Some(entry) = &unit.entry {
            bytes = rename_entry_point(bytes, entry);
        }
        let tested = if self.tested { "" } else { " (no test of this project runs it)" };
        let version = version(program, folder.path());
        let compiler = format!("{} {version}{tested} {}", self.program, flags.join(" "));
        let stored = StoredModule { bytes, compiler };
        if is_cached {
            cache::write(&key, &stored);
        }
        Ok(module(stored))
    }

    /// Returns the flags before the input file.
    fn flags(
        &self,
        source: &ShaderSource<'_>,
        unit: &CompileUnit,
        besides: &[&str],
    ) -> Result<Vec<String>, SourceError> {
        let given = &source.given;
        let mut flags = Vec::new();
        match self.preprocessor {
            Some([define, include]) => {
                // Definitions were for the command of `--preprocess`, which has its own syntax for them.
                let defines = given.defines.iter().filter(|_| !source.is_preprocessed);
                let defines = defines.chain(&unit.defines);
                flags.extend(defines.map(|definition| format!("{define}{definition}")));
                // A changed text is compiled in another folder.
                let own: Vec<PathBuf> =
                    source.is_changed(unit).then(|| folder_of(Path::new(source.file))).into_iter().collect();
                let folders = own.iter().chain(&given.includes);
                flags.extend(folders.map(|path| format!("{include}{}", path.display())));
            }
            None if given.defines.is_empty() && given.includes.is_empty() || source.is_preprocessed => {}
            None => {
                let (file, program) = (source.file.to_owned(), self.program);
                return Err(SourceError::NoPreprocessor { file, program });
            }
        }
        flags.extend(besides.iter().map(|flag| (*flag).to_owned()));
        let entry = unit.entry.as_deref().unwrap_or("main");
        for flag in self.flags.iter().take_while(|flag| **flag != "{in}") {
            let stage = unit.stage;
            flags.push(
                flag.replace("{entry}", entry)
                    .replace("{stage}", stage.extension)
                    .replace("{profile}", stage.profile)
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
