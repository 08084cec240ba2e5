//! Shaders of users as SPIR-V: read as they are, or made by the compiler of their language, with lines of the source.
//!
//! Compilers are programs of the environment, the ones that users build their shaders with: none is built in, so that what is
//! judged is what they ship, and its name, version and flags stand in every answer.

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
/// Extensions of GLSL: its stages, and one that leaves the stage to the word before it, as in `name.comp.glsl`.
const GLSL: &[&str] = &[
    "comp", "vert", "frag", "tesc", "tese", "geom", "mesh", "task", "rgen", "rint", "rahit", "rchit",
    "rmiss", "rcall", "glsl",
];

/// How long a compiler may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of what a compiler says that are shown at most.
const MAX_LINES: usize = 20;

/// A compiler that makes SPIR-V of a language.
struct Compiler {
    /// Its program.
    program: &'static str,
    /// The language by extensions of its files.
    extensions: &'static [&'static str],
    /// What it is given; `{in}`, `{out}`, `{entry}` and `{stage}` stand for what they say. What makes it write lines is last
    /// before the files.
    flags: &'static [&'static str],
    /// What it is given besides where registers of several kinds (`t0`, `u0`) are one binding: the bindings of each kind begin elsewhere.
    apart: &'static [&'static str],
    /// What stands before a definition and a folder of included files, where it knows these.
    preprocessor: Option<[&'static str; 2]>,
    /// Where one gets it.
    install: &'static str,
    /// Whether this project's tests run it.
    tested: bool,
}

/// What glslang is given for GLSL, and for HLSL.
const GLSLANG: &[&str] = &["-V", "--target-env", "vulkan1.3", "-S", "{stage}", "-g", "{in}", "-o", "{out}"];
const GLSLANG_HLSL: &[&str] =
    &["-V", "-D", "--target-env", "vulkan1.3", "-S", "comp", "-e", "{entry}", "-g", "{in}", "-o", "{out}"];

/// Where bindings of each kind begin in HLSL, where registers of several kinds share their numbers: constants at 0, textures and what is
/// read only (`t`) at 100, samplers at 200, what is written (`u`) at 300.
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

/// The compilers, for each language in the order in which they are looked for.
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

/// How a source is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Compilation<'a> {
    /// The entry point, where the language wants it named.
    pub entry: Option<&'a str>,
    /// Definitions for the preprocessor.
    pub defines: &'a [String],
    /// Folders of included files.
    pub includes: &'a [PathBuf],
    /// The compiler's program; where none is named the first that is installed and takes the source.
    pub compiler: Option<&'a str>,
}

/// A shader of a user.
#[derive(Clone, Debug)]
pub struct SourceModule {
    /// SPIR-V, in words or as text.
    pub bytes: Vec<u8>,
    /// The compiler that made it, with its version and flags.
    pub compiler: Option<String>,
}

/// Why there is no shader.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum SourceError {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    /// It has no extension of a language.
    #[error("{file}: no shader by its extension")]
    NoShader { file: String },
    /// No compiler for the language is there.
    #[error("{file}: no compiler for it is installed: {wanted}")]
    NoCompiler { file: String, wanted: String },
    /// It was chosen, and is no compiler of the language.
    #[error("{file}: `{program}` is none of its compilers: {known}")]
    NotOfLanguage { file: String, program: String, known: String },
    /// The language has no preprocessor.
    #[error("{file}: {program} takes no definitions and no folders of included files")]
    NoPreprocessor { file: String, program: &'static str },
    /// The compiler failed, or took too long.
    #[error("{file}: {compiler} {what}")]
    Failed { file: String, compiler: &'static str, what: String },
    /// The compiler found the shader wrong.
    #[error("{said}\n{file}: {compiler} does not compile it")]
    Wrong { file: String, line: u32, column: u32, compiler: &'static str, said: String },
}

impl SourceError {
    /// Line and column of what is wrong with the source, 1 where that is not known.
    pub fn place(&self) -> (u32, u32) {
        match self {
            SourceError::Wrong { line, column, .. } => (*line, *column),
            _ => (1, 1),
        }
    }

    /// The error as what ends a command: of the environment where a program is missing or did not end.
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

/// Whether an argument names a shader. `barrier/MP+cbar@size-33.mesh` ends as one and names a test, unless there is such a file.
pub fn is_shader(argument: &str) -> bool {
    if argument.contains('@') && !Path::new(argument).is_file() {
        return false;
    }
    let extension = extension(argument);
    MODULES.contains(&extension) || COMPILERS.iter().any(|compiler| compiler.extensions.contains(&extension))
}

/// Reads a shader, compiled where it is a source.
///
/// # Errors
/// What is wrong with it, or missing.
pub fn load(file: &str, given: &Compilation<'_>) -> Result<SourceModule, SourceError> {
    let wrong = |error| SourceError::File { file: file.to_owned(), error };
    let extension = extension(file);
    if MODULES.contains(&extension) {
        return Ok(SourceModule { bytes: fs::read(file).map_err(wrong)?, compiler: None });
    }
    // Whether it can be read is told in our words.
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
            // Another may know what this one does not, as dxc knows the later HLSL and tint the extensions of WGSL.
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
    /// Compiles a file with flags besides its own; none where the program is not there.
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

    /// What it says of its version.
    fn version(&self, folder: &Path) -> String {
        let mut command = Command::new(self.program);
        command.arg("--version");
        let said = ended(command, folder).ok().flatten().map(|(_, said)| said).unwrap_or_default();
        let first = said.lines().next().unwrap_or_default();
        first.rsplit(' ').next().unwrap_or_default().to_owned()
    }
}

/// Whether two variables of a binary module have the same set and binding.
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

/// The stage of a GLSL file.
fn stage(file: &str) -> &str {
    let known = |name: &Path| {
        let found = name.extension().and_then(OsStr::to_str)?;
        GLSL.iter().find(|stage| **stage == found && found != "glsl").copied()
    };
    let name = Path::new(file);
    known(name).or_else(|| known(Path::new(name.file_stem()?))).unwrap_or("comp")
}

/// How a program ended, and what it printed; none where there is no such program.
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

/// A text without what tells terminals how to show it: compilers colour their messages though nobody sees them.
fn plain(said: &str) -> String {
    let mut plain = String::with_capacity(said.len());
    let mut rest = said.chars();
    while let Some(next) = rest.next() {
        match next {
            // A sequence `ESC [ … letter`, or `ESC ] … BEL`, or two characters.
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

/// What a compiler printed, without what says nothing.
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

/// The first place in a file that a compiler named: `FILE:LINE`, `FILE:LINE:COLUMN` or `FILE(LINE)`.
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
