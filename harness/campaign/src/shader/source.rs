//! Reads user shaders as SPIR-V, or compiles them with the compiler of their language, with debug lines.
//!
//! The compilers are the user's installed programs, so that the analysed code is the code that the user
//! ships. Every answer contains the compiler's name, version and flags.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rspirv::spirv::{Decoration, Op};

use crate::Failure;

/// Extensions of SPIR-V, binary and text.
const MODULES: [&str; 2] = ["spv", "spvasm"];
/// Extensions of GLSL: the stages, and `glsl`, which takes the stage from the extension before it, as in
/// `name.comp.glsl`.
const GLSL: &[&str] = &[
    "comp", "vert", "frag", "tesc", "tese", "geom", "mesh", "task", "rgen", "rint", "rahit", "rchit",
    "rmiss", "rcall", "glsl",
];

/// Time limit of a compiler.
const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum number of lines of a compiler's message.
const MAX_LINES: usize = 20;

/// A compiler to SPIR-V.
struct Compiler {
    /// The executable.
    program: &'static str,
    /// The file extensions of the language.
    extensions: &'static [&'static str],
    /// The arguments, with placeholders `{in}`, `{out}`, `{entry}` and `{stage}`. The flag for debug lines is
    /// the last before the files.
    flags: &'static [&'static str],
    /// Additional arguments if registers of several kinds (`t0`, `u0`) share a binding: they shift the
    /// bindings of each kind.
    apart: &'static [&'static str],
    /// The flags for a definition and for an include folder, if it has a preprocessor.
    preprocessor: Option<[&'static str; 2]>,
    /// How to install it.
    install: &'static str,
    /// True if the tests of this project run it.
    tested: bool,
}

/// The arguments of glslang for GLSL.
const GLSLANG: &[&str] = &["-V", "--target-env", "vulkan1.3", "-S", "{stage}", "-g", "{in}", "-o", "{out}"];
const GLSLANG_HLSL: &[&str] =
    &["-V", "-D", "--target-env", "vulkan1.3", "-S", "comp", "-e", "{entry}", "-g", "{in}", "-o", "{out}"];

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

/// The compilers, in order of preference for each language.
const COMPILERS: [Compiler; 8] = [
    Compiler {
        program: "glslangValidator",
        extensions: GLSL,
        flags: GLSLANG,
        apart: &[],
        preprocessor: Some(["-D", "-I"]),
        install: "the package glslang-tools, or the Vulkan SDK",
        tested: true,
    },
    Compiler {
        program: "glslang",
        extensions: GLSL,
        flags: GLSLANG,
        apart: &[],
        preprocessor: Some(["-D", "-I"]),
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "glslangValidator",
        extensions: &["hlsl"],
        flags: GLSLANG_HLSL,
        apart: GLSLANG_APART,
        preprocessor: Some(["-D", "-I"]),
        install: "the package glslang-tools, or the Vulkan SDK",
        tested: true,
    },
    Compiler {
        program: "glslang",
        extensions: &["hlsl"],
        flags: GLSLANG_HLSL,
        apart: GLSLANG_APART,
        preprocessor: Some(["-D", "-I"]),
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "dxc",
        extensions: &["hlsl"],
        flags: &[
            "-spirv",
            "-fspv-target-env=vulkan1.3",
            "-T",
            "cs_6_6",
            "-E",
            "{entry}",
            "-Zi",
            "-fspv-debug=vulkan-with-source",
            "{in}",
            "-Fo",
            "{out}",
        ],
        apart: DXC_APART,
        preprocessor: Some(["-D", "-I"]),
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "slangc",
        extensions: &["slang"],
        flags: &[
            "-target",
            "spirv",
            "-profile",
            "spirv_1_5",
            "-stage",
            "compute",
            "-entry",
            "{entry}",
            "-g",
            "{in}",
            "-o",
            "{out}",
        ],
        apart: &[],
        preprocessor: Some(["-D", "-I"]),
        install: "the Vulkan SDK",
        tested: false,
    },
    Compiler {
        program: "naga",
        extensions: &["wgsl"],
        flags: &["-g", "{in}", "{out}"],
        apart: &[],
        preprocessor: None,
        install: "`cargo install naga-cli`",
        tested: true,
    },
    Compiler {
        program: "tint",
        extensions: &["wgsl"],
        flags: &["--format", "spirv", "{in}", "-o", "{out}"],
        apart: &[],
        preprocessor: None,
        install: "Dawn",
        tested: false,
    },
];

/// The compiler options for a source file.
#[derive(Clone, Copy, Debug)]
pub struct Compilation<'a> {
    /// The entry point, for languages that require its name.
    pub entry: Option<&'a str>,
    /// Preprocessor definitions.
    pub defines: &'a [String],
    /// Include folders.
    pub includes: &'a [PathBuf],
    /// The executable of the compiler; by default, the first installed one that accepts the source.
    pub compiler: Option<&'a str>,
}

/// The SPIR-V of a user shader.
#[derive(Clone, Debug)]
pub struct SourceModule {
    /// The SPIR-V, as binary or text.
    pub bytes: Vec<u8>,
    /// The compiler with its version and flags.
    pub compiler: Option<String>,
}

/// Why a shader could not be loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum SourceError {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    /// The extension belongs to no shader language.
    #[error(
        "{file}: unknown shader extension; expected .comp or another GLSL stage, .hlsl, .slang, .wgsl, .spv or .spvasm"
    )]
    NoShader { file: String },
    /// No compiler for the language is installed.
    #[error("{file}: no compiler for it is installed: {wanted}")]
    NoCompiler { file: String, wanted: String },
    /// The chosen compiler does not support the language.
    #[error("{file}: `{program}` is none of its compilers: {known}")]
    NotOfLanguage { file: String, program: String, known: String },
    /// The compiler has no preprocessor.
    #[error("{file}: {program} takes no definitions and no folders of included files")]
    NoPreprocessor { file: String, program: &'static str },
    /// The compiler failed, or exceeded its time limit.
    #[error("{file}: {compiler} {what}")]
    Failed { file: String, compiler: &'static str, what: String },
    /// The compiler rejected the shader.
    #[error("{said}\n{file}: {compiler} does not compile it")]
    Wrong { file: String, line: u32, column: u32, compiler: &'static str, said: String },
}

impl SourceError {
    /// Returns the line and column of the error, or 1 if unknown.
    pub fn place(&self) -> (u32, u32) {
        match self {
            SourceError::Wrong { line, column, .. } => (*line, *column),
            _ => (1, 1),
        }
    }

    /// Converts the error: a missing or hanging compiler is a failure of the environment, any other error is
    /// wrong input.
    pub fn failure(&self) -> Failure {
        match self {
            SourceError::NoCompiler { .. } | SourceError::Failed { .. } => Failure::environment_error(self),
            _ => Failure::input_error(self),
        }
    }
}

fn extension(file: &str) -> &str {
    Path::new(file).extension().and_then(OsStr::to_str).unwrap_or_default()
}

/// Returns true if an argument names a shader. A test variant such as `barrier/MP+cbar@size-33.mesh` does
/// not, unless it is a file.
pub fn is_shader(argument: &str) -> bool {
    if argument.contains('@') && !Path::new(argument).is_file() {
        return false;
    }
    let extension = extension(argument);
    MODULES.contains(&extension) || COMPILERS.iter().any(|compiler| compiler.extensions.contains(&extension))
}

/// Reads a shader, and compiles it if it is source code.
///
/// # Errors
/// If the shader is invalid, or a file or compiler is missing.
pub fn load(file: &str, given: &Compilation<'_>) -> Result<SourceModule, SourceError> {
    let wrong = |error| SourceError::File { file: file.to_owned(), error };
    let extension = extension(file);
    if MODULES.contains(&extension) {
        return Ok(SourceModule { bytes: fs::read(file).map_err(wrong)?, compiler: None });
    }
    // Opening the file first gives our own error for an unreadable file.
    fs::File::open(file).map_err(wrong)?;
    let of_language = || COMPILERS.iter().filter(|compiler| compiler.extensions.contains(&extension));
    let listed = |word: fn(&Compiler) -> String| of_language().map(word).collect::<Vec<_>>().join(" or ");
    let chosen = |compiler: &&Compiler| given.compiler.is_none_or(|name| name == compiler.program);
    if let Some(program) = given.compiler.filter(|_| !of_language().any(|one| chosen(&one))) {
        let program = program.to_owned();
        let known = listed(|compiler| format!("`{}`", compiler.program));
        return Err(SourceError::NotOfLanguage { file: file.to_owned(), program, known });
    }
    if of_language().next().is_none() {
        return Err(SourceError::NoShader { file: file.to_owned() });
    }
    let mut refused = None;
    for compiler in of_language().filter(chosen) {
        let made = match compiler.compile(file, given, &[]) {
            Ok(Some(shader)) if !compiler.apart.is_empty() && has_shared_binding(&shader.bytes) => {
                compiler.compile(file, given, compiler.apart)
            }
            made => made,
        };
        match made {
            Ok(Some(shader)) => return Ok(shader),
            Ok(None) => {}
            // Another compiler may accept the source: dxc knows newer HLSL, and tint more extensions of WGSL.
            Err(wrong @ SourceError::Wrong { .. }) => {
                refused.get_or_insert(wrong);
            }
            Err(other) => return Err(other),
        }
    }
    if let Some(wrong) = refused {
        return Err(wrong);
    }
    let wanted = listed(|compiler| format!("`{}` ({})", compiler.program, compiler.install));
    Err(SourceError::NoCompiler { file: file.to_owned(), wanted })
}

impl Compiler {
    /// Compiles a file with additional flags; `None` if the compiler is not installed.
    fn compile(
        &self,
        file: &str,
        given: &Compilation<'_>,
        besides: &[&str],
    ) -> Result<Option<SourceModule>, SourceError> {
        let failed =
            |what: String| SourceError::Failed { file: file.to_owned(), compiler: self.program, what };
        let folder = tempfile::Builder::new().prefix("vk-litmus-").tempdir();
        let folder = folder.map_err(|error| failed(error.to_string()))?;
        let module = folder.path().join("module.spv");
        let mut flags = Vec::new();
        match self.preprocessor {
            Some([define, include]) => {
                flags.extend(given.defines.iter().map(|definition| format!("{define}{definition}")));
                flags.extend(given.includes.iter().map(|path| format!("{include}{}", path.display())));
            }
            None if given.defines.is_empty() && given.includes.is_empty() => {}
            None => return Err(SourceError::NoPreprocessor { file: file.to_owned(), program: self.program }),
        }
        flags.extend(besides.iter().map(|flag| (*flag).to_owned()));
        let mut arguments = Vec::new();
        for flag in self.flags {
            match *flag {
                "{in}" => arguments.push(file.to_owned()),
                "{out}" => arguments.push(module.display().to_string()),
                "{entry}" => flags.push(given.entry.unwrap_or("main").to_owned()),
                "{stage}" => flags.push(stage(file).to_owned()),
                "-o" | "-Fo" => arguments.push((*flag).to_owned()),
                flag => flags.push(flag.to_owned()),
            }
        }
        let mut command = Command::new(self.program);
        command.args(&flags).args(&arguments);
        let Some((status, said)) = ended(command, folder.path()).map_err(failed)? else { return Ok(None) };
        if !status.success() {
            let said = cleaned(&said, file);
            let (line, column) = place(&said, file).unwrap_or((1, 1));
            let (file, compiler) = (file.to_owned(), self.program);
            return Err(SourceError::Wrong { file, line, column, compiler, said });
        }
        let module = fs::read(module).map_err(|error| failed(format!("wrote no module: {error}")))?;
        let tested = if self.tested { "" } else { " (no test of this project runs it)" };
        let compiler =
            format!("{} {}{tested} {}", self.program, self.version(folder.path()), flags.join(" "));
        Ok(Some(SourceModule { bytes: module, compiler: Some(compiler) }))
    }

    /// Returns the last word of the first line that `--version` prints.
    fn version(&self, folder: &Path) -> String {
        let mut command = Command::new(self.program);
        command.arg("--version");
        let said = ended(command, folder).ok().flatten().map(|(_, said)| said).unwrap_or_default();
        let first = said.lines().next().unwrap_or_default();
        first.rsplit(' ').next().unwrap_or_default().to_owned()
    }
}

/// Returns true if two variables of a binary module have the same set and binding.
fn has_shared_binding(module: &[u8]) -> bool {
    let words: Vec<u32> =
        module.chunks_exact(4).filter_map(|word| word.try_into().ok()).map(u32::from_le_bytes).collect();
    let mut places: BTreeMap<u32, [Option<u32>; 2]> = BTreeMap::new();
    let mut rest = words.get(5..).unwrap_or_default();
    while let Some(first) = rest.first() {
        let Some((instruction, others)) = rest.split_at_checked((first >> 16).max(1) as usize) else { break };
        rest = others;
        let [_, id, decoration, value] = instruction else { continue };
        if first & 0xffff != Op::Decorate as u32 {
            continue;
        }
        let [set, binding] = places.entry(*id).or_default();
        if *decoration == Decoration::DescriptorSet as u32 {
            *set = Some(*value);
        } else if *decoration == Decoration::Binding as u32 {
            *binding = Some(*value);
        }
    }
    let mut bound: Vec<_> = places.into_values().filter(|[_, binding]| binding.is_some()).collect();
    bound.sort_unstable();
    bound.windows(2).any(|two| matches!(two, [one, next] if one == next))
}

/// Returns the stage of a GLSL file.
fn stage(file: &str) -> &str {
    let known = |name: &Path| {
        let found = name.extension().and_then(OsStr::to_str)?;
        GLSL.iter().find(|stage| **stage == found && found != "glsl").copied()
    };
    let name = Path::new(file);
    known(name).or_else(|| known(Path::new(name.file_stem()?))).unwrap_or("comp")
}

/// Runs a program to its end; returns its status and output, or `None` if it does not exist.
fn ended(mut command: Command, folder: &Path) -> Result<Option<(ExitStatus, String)>, String> {
    let told = |error: std::io::Error| error.to_string();
    let printed: PathBuf = folder.join("printed");
    let output = fs::File::create(&printed).map_err(told)?;
    let errors = output.try_clone().map_err(told)?;
    let mut child = match command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(told)? {
            let said = fs::read(&printed).map_err(told)?;
            return Ok(Some((status, plain(&String::from_utf8_lossy(&said)))));
        }
        if since.elapsed() > PATIENCE {
            child.kill().and_then(|()| child.wait()).map_err(told)?;
            return Err(format!("did not end within {} seconds", PATIENCE.as_secs()));
        }
        sleep(Duration::from_millis(2));
    }
}

/// Removes terminal control sequences: some compilers color messages even without a terminal.
fn plain(said: &str) -> String {
    let mut plain = String::with_capacity(said.len());
    let mut rest = said.chars();
    while let Some(next) = rest.next() {
        match next {
            // A sequence `ESC [ … letter`, `ESC ] … BEL`, or two characters.
            '\u{1b}' => match rest.next() {
                Some('[') => drop(rest.by_ref().find(|c| ('@'..='~').contains(c))),
                Some(']') => drop(rest.by_ref().find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\n'))),
                _ => {}
            },
            '\n' | '\t' => plain.push(next),
            other if results::show::acts(other) => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Removes lines without information from a compiler's output.
fn cleaned(said: &str, file: &str) -> String {
    let says = |line: &&str| {
        !line.trim().is_empty()
            && line.trim() != file
            && !line.contains("No code generated.")
            && !line.starts_with("SPIR-V is not generated")
    };
    let strip = |line: &str| line.strip_prefix("ERROR: ").unwrap_or(line).trim_end().to_owned();
    said.lines().filter(says).take(MAX_LINES).map(strip).collect::<Vec<_>>().join("\n")
}

/// Returns the first position in a file that a message names: `FILE:LINE`, `FILE:LINE:COLUMN` or
/// `FILE(LINE)`.
fn place(said: &str, file: &str) -> Option<(u32, u32)> {
    said.match_indices(file).find_map(|(at, _)| {
        let rest = said[at + file.len()..].strip_prefix([':', '('])?;
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        let line = numbers.next()?.parse().ok().filter(|line| *line > 0)?;
        let column = rest.find([':', ')', ' ', '\n']).filter(|end| rest[*end..].starts_with(':'));
        let column = column.and_then(|_| numbers.next()?.parse().ok()).filter(|column| *column > 0);
        Some((line, column.unwrap_or(1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_words_of_each_compiler() {
        let cases = [
            ("ERROR: a/k.comp:7: '' :  syntax error", Some((7, 1))),
            ("error: no definition\n  ┌─ a/k.comp:5:13\n", Some((5, 13))),
            ("a/k.comp:3:9: error: expected ';'", Some((3, 9))),
            ("a/k.comp(12): error 20001: unexpected", Some((12, 1))),
            ("ERROR: other.glsl:2: 'x' : undeclared identifier", None),
            ("a/k.comp: no such thing", None),
        ];
        for (said, expected) in cases {
            assert_eq!(place(said, "a/k.comp"), expected, "{said}");
        }
    }

    #[test]
    fn colours_of_compilers_are_left_out() {
        let cases = [
            (
                "\u{1b}[0m\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: no\n  ┌─ a.wgsl:1:2\r\n",
                "error: no\n  ┌─ a.wgsl:1:2\n",
            ),
            ("\u{1b}]8;;file:a\u{7}a.wgsl:3\u{1b}]8;;\u{7}\tis \u{202e}wrong\u{1b}", "a.wgsl:3\tis wrong"),
            ("é 日本 `x`", "é 日本 `x`"),
        ];
        for (said, expected) in cases {
            assert_eq!(plain(said), expected);
        }
    }

    #[test]
    fn a_variant_of_a_test_is_no_shader() {
        assert!(is_shader("a.mesh"));
        assert!(!is_shader("barrier/MP+cbar@size-33.mesh"));
    }

    #[test]
    fn stages_are_named_by_extensions() {
        let cases =
            [("k.comp", "comp"), ("k.frag.glsl", "frag"), ("k.glsl", "comp"), ("a.vert/k.glsl", "comp")];
        for (file, expected) in cases {
            assert_eq!(stage(file), expected, "{file}");
        }
    }
}
