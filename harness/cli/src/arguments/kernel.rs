//! Arguments that describe the inputs of shaders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::InputMode;
use arithmetic::TexelFormat;
use campaign::contained_path::path_inside;
use campaign::recorded_contents::unpack_contents;
use campaign::shader::source::{Compilation, CompileCommands, parse_definitions};
use clap::{Args, ValueEnum as _};
use entry_point::inputs::RayResults;
use entry_point::{AnalysisOptions, inputs};
use spirv_reader::{HlslExecution, HlslMemory, HlslRules};
use vk_litmus::{ShaderInputs, program};
use walk::texels::unpack_texels;

use crate::exit::Failure;

/// Inputs of a shader, for commands that accept shaders.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Shaders")]
pub struct KernelArguments {
    /// Entry point of a shader [default: every one].
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub entry: Option<String>,
    /// Number of workgroups; the local size comes from the module.
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_grid)]
    pub grid: Option<[u32; 3]>,
    /// Run only this workgroup of the grid; may be repeated. For grids that are too large to run whole.
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_position, hide_short_help = true)]
    pub workgroup: Vec<[u32; 3]>,
    /// Invocations per subgroup [default: the workgroup size, at most 128].
    #[arg(long, value_name = "N", value_parser = parse_subgroup_size, hide_short_help = true)]
    pub subgroup_size: Option<u32>,
    /// Execution model of the waves of HLSL: a candidate of TC57 [default: independent].
    ///
    /// `lockstep`: all lanes of a wave. `tangle`: those that a branch has not separated; they join after it. `branches` and
    /// `atomics`: independent lanes that synchronize there.
    #[arg(long, value_name = "independent|branches|atomics|tangle|lockstep", value_parser = parse_execution, hide_short_help = true)]
    pub hlsl_execution: Option<HlslExecution>,
    /// Collisions of plain accesses in HLSL: defined as in D3D11.3, or races as in HSA [default: d3d11].
    #[arg(long, value_name = "d3d11|hsa", value_parser = parse_hlsl_memory, hide_short_help = true)]
    pub hlsl_memory: Option<HlslMemory>,
    /// Value of a specialization constant or of an override of WGSL.
    #[arg(long, value_name = "ID|NAME=V", value_parser = parse_pair, hide_short_help = true)]
    pub spec: Vec<(String, String)>,
    /// Push constants: a file of bytes, 32-bit words from an offset, or numbers of a member.
    #[arg(long, value_name = "FILE|OFFSET|NAME=V,V…", hide_short_help = true)]
    pub push: Vec<String>,
    /// Initial contents of a buffer [default: chosen, see --inputs].
    ///
    /// CONTENTS is a file, or zeros, ones, iota, pairs, spaced, small, random, floats or wide-floats with an
    /// optional size in bytes (`iota:1024`). Instead of SET.BINDING, give the buffer's name or a NAME of `--bind`.
    /// MEMBER is one of the buffer, such as `params.count=4`; the others are chosen.
    #[arg(long, value_name = "SET.BINDING=CONTENTS", value_parser = parse_pair)]
    pub buffer: Vec<(String, String)>,
    /// Point a buffer-address member at a new buffer called NAME.
    ///
    /// MEMBER is in the push constants or a buffer: `block.member`, `push@OFFSET` or `SET.BINDING@OFFSET`.
    /// Members with the same NAME share one buffer.
    #[arg(long, value_name = "MEMBER=NAME", value_parser = parse_pair, hide_short_help = true)]
    pub bind: Vec<(String, String)>,
    /// Size and contents of an image [default contents: zeros].
    ///
    /// IMAGE is `WxH[xD][,mips=N][,fill=zeros|ones|iota|pairs|spaced|small|random|floats|wide-floats]`: width, height and depth or layers, number of mip levels,
    /// and contents of the components; or `,file=FILE` with four 32-bit components per texel, or
    /// `,format=rgba8,file=FILE` with packed texels.
    #[arg(long, value_name = "SET.BINDING|NAME=IMAGE", value_parser = parse_pair, hide_short_help = true)]
    pub image: Vec<(String, String)>,
    /// Sampler filter and address mode [default: repeat]. Without this, sampled values are unknown.
    ///
    /// SAMPLER is `nearest|linear[,repeat|mirror|clamp]`. Also sets the sampler of a combined image sampler.
    #[arg(long, value_name = "SET.BINDING|NAME=SAMPLER", value_parser = parse_pair, hide_short_help = true)]
    pub sampler: Vec<(String, String)>,
    /// Results of ray queries [default: alternating]: every second ray hits a triangle, every ray, or none.
    #[arg(long, value_name = "alternating|hit|miss", value_parser = parse_rays, hide_short_help = true)]
    pub rays: Option<RayResults>,
    /// Results of float instructions [default: rounded, to the nearest].
    ///
    /// `exact`: those that Vulkan's rules of precision do not fix are unknown: if a step rounds, or a number is denormal, infinite or
    /// NaN. Contents, assertions and expectations then hold of every device.
    #[arg(long, value_name = "exact|rounded", hide_possible_values = true, hide_short_help = true)]
    pub float: Option<FloatWord>,
    /// Values of inputs that no option supplies [default: auto].
    ///
    /// `auto` chooses values that reach the code and let invocations interact; `zeros`, and `run`, take zeros and one workgroup.
    /// `given` rejects a shader of which a buffer, an image or push constants are missing.
    #[arg(long, value_name = "auto|zeros|given", hide_possible_values = true)]
    pub inputs: Option<InputWord>,
    /// A case file with all inputs of a shader.
    #[arg(long, value_name = "FILE.toml", hide_short_help = true)]
    pub case: Option<PathBuf>,
    /// Assertion on every final state, such as `data[0] == 3 and flag == 1`.
    #[arg(long, value_name = "EXPR", hide_short_help = true)]
    pub assert: Option<String>,
    /// Preprocessor definition for a shader source.
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]", hide_short_help = true)]
    pub define: Vec<String>,
    /// Folder of include files; the shader's own folder is always searched.
    #[arg(short = 'I', long, value_name = "DIR", hide_short_help = true)]
    pub include: Vec<PathBuf>,
    /// A file of preprocessor definitions: `NAME VALUE`, `NAME=VALUE` or `#define NAME VALUE` a line.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub define_file: Vec<PathBuf>,
    /// Definitions, include folders and entry point of each source, as in compile_commands.json.
    #[arg(long, value_name = "FILE.json", hide_short_help = true)]
    pub compile_commands: Option<PathBuf>,
    /// Shell command that expands a source, such as a template; reads standard input.
    ///
    /// It prints the new source, or writes it to `{out}`. `{in}` is the file and `{defines}` the definitions of
    /// `--define`. Lines of the answer are those of the new source.
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub preprocess: Option<String>,
    /// Compile sources again, without the cache of compiled modules.
    #[arg(long, hide_short_help = true)]
    pub no_cache: bool,
    /// Compiler of a shader [default: the first installed one that accepts the source].
    ///
    /// glslangValidator, glslang or glslc for GLSL; glslangValidator, glslang, slangc or dxc for HLSL; slangc for
    /// Slang; naga or tint for WGSL; clspv for OpenCL C.
    #[arg(long, value_name = "PROGRAM", hide_short_help = true)]
    pub compiler: Option<String>,
    /// Let the case read files outside its own folder.
    #[arg(long, requires = "case", hide_short_help = true)]
    pub allow_outside: bool,
}

/// A value of `--float`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FloatWord {
    /// Only results that every device computes.
    Exact,
    /// Rounded to the nearest.
    Rounded,
}

/// A value of `--inputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum InputWord {
    /// Chosen so that code is reached and invocations interact.
    Auto,
    /// Zeros, and one workgroup.
    Zeros,
    /// None: each that the shader uses has to be given.
    Given,
}

fn parse_grid(text: &str) -> Result<[u32; 3], String> {
    let grid = parse_up_to_three(text, 1)?;
    if grid.contains(&0) {
        return Err("every dimension needs at least one workgroup".to_owned());
    }
    Ok(grid)
}

/// Parses the position of a workgroup in the grid.
fn parse_position(text: &str) -> Result<[u32; 3], String> {
    parse_up_to_three(text, 0)
}

/// Parses one to three numbers; the others are `rest`.
fn parse_up_to_three(text: &str, rest: u32) -> Result<[u32; 3], String> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([x]) => Ok([*x, rest, rest]),
        Ok([x, y]) => Ok([*x, *y, rest]),
        Ok([x, y, z]) => Ok([*x, *y, *z]),
        _ => Err("expected one to three numbers, such as 4,1,1".to_owned()),
    }
}

/// Parses a subgroup size that Vulkan allows (`subgroupSize`).
fn parse_subgroup_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size: &u32| size.is_power_of_two() && *size <= 128);
    size.ok_or_else(|| "expected a power of two up to 128".to_owned())
}

fn parse_execution(text: &str) -> Result<HlslExecution, String> {
    parse_name(&HlslRules::EXECUTIONS, text)
}

fn parse_hlsl_memory(text: &str) -> Result<HlslMemory, String> {
    parse_name(&HlslRules::MEMORIES, text)
}

fn parse_name<T: Copy>(known: &[(&str, T)], text: &str) -> Result<T, String> {
    let named = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    named.ok_or_else(|| format!("expected one of {}", names()))
}

/// Returns the name of a value.
fn name_of<T: PartialEq>(known: &[(&'static str, T)], value: &T) -> String {
    let named = known.iter().find(|(_, known)| known == value);
    named.map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

fn parse_rays(text: &str) -> Result<RayResults, String> {
    RayResults::from_name(text).ok_or_else(|| "expected alternating, hit or miss".to_owned())
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("expected `=`")?;
    Ok((left.trim().to_owned(), right.trim().to_owned()))
}

/// Size in bytes of a buffer without a given size.
const DEFAULT_BUFFER_BYTES: u64 = 64 * 1024;

fn invalid_value_failure(flag: &str, text: &str, what: &str) -> Failure {
    Failure::input_message(format!("{flag} {text}: {what}"))
}

fn read_input(flag: &str, path: &str) -> Result<Vec<u8>, Failure> {
    read_limited(path.as_ref()).map_err(|why| invalid_value_failure(flag, path, &why))
}

fn read_limited(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = campaign::inputs::read_limited(path, inputs::MAX_BYTES).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > inputs::MAX_BYTES {
        return Err(format!("more than {} bytes", inputs::MAX_BYTES));
    }
    Ok(bytes)
}

/// The words for contents of buffers.
const BUFFER_FILLS: &str = "zeros, ones, iota, small, random, pairs, spaced, floats or wide-floats";

/// Returns the contents of a buffer: a fill word with an optional size, or a file.
fn parse_contents(value: &str) -> Result<Vec<u8>, Failure> {
    let (word, bytes) = match value.rsplit_once(':').map(|(word, bytes)| (word, bytes.parse().ok())) {
        Some((word, Some(bytes))) => (word, bytes),
        _ => (value, DEFAULT_BUFFER_BYTES),
    };
    if bytes > inputs::MAX_BYTES {
        return Err(invalid_value_failure(
            "--buffer",
            value,
            &format!("more than {} bytes", inputs::MAX_BYTES),
        ));
    }
    let read = || {
        read_limited(value.as_ref()).map_err(|why| {
            let why = format!("{why}; expected a file, or {BUFFER_FILLS}, with a size as in `zeros:1024`");
            invalid_value_failure("--buffer", value, &why)
        })
    };
    inputs::fill_bytes(word, bytes).map_or_else(read, Ok)
}

/// Returns true for numbers separated by commas, unless a file has this name.
fn is_list_of_numbers(text: &str) -> bool {
    let is_number = |part: &str| inputs::parse_integer(part, 64).is_some() || part.parse::<f64>().is_ok();
    text.split(',').all(|part| is_number(part.trim())) && !Path::new(text).exists()
}

/// Returns true if the left side of `--spec` is a number, not a name.
fn is_constant_id(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns the folder of a file, which is `.` for a bare name.
fn parent_folder(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

impl KernelArguments {
    /// Returns true if no input is given.
    pub fn is_empty(&self) -> bool {
        self.to_words().is_empty()
    }

    fn hlsl_rules(&self) -> HlslRules {
        HlslRules {
            execution: self.hlsl_execution.unwrap_or_default(),
            memory: self.hlsl_memory.unwrap_or_default(),
        }
    }

    /// Returns how missing inputs are supplied.
    pub fn input_mode(&self) -> InputMode {
        match self.inputs {
            Some(InputWord::Zeros) => InputMode::Zeros,
            Some(InputWord::Auto | InputWord::Given) | None => InputMode::Auto,
        }
    }

    /// Returns the inputs for the library.
    ///
    /// # Errors
    /// Returns an error if a value or a file is invalid.
    pub fn shader_inputs(&self, unroll: Option<u32>) -> Result<ShaderInputs, Failure> {
        Ok(program::shader_inputs(self.to_options(unroll)?, self.input_mode()))
    }

    /// Returns the settings for compiling a source, and reads the files of definitions and flags.
    ///
    /// # Errors
    /// Returns an error if a file is invalid.
    pub fn compilation(&self) -> Result<Compilation, Failure> {
        let text = |flag: &str, path: &Path| {
            let bytes = read_input(flag, &path.display().to_string())?;
            Ok::<_, Failure>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut defines = Vec::new();
        for path in &self.define_file {
            let parsed = parse_definitions(&text("--define-file", path)?);
            defines.extend(parsed.map_err(|(line, found)| {
                let what = format!("`{found}`; expected `NAME VALUE`, `NAME=VALUE` or `#define NAME VALUE`");
                invalid_value_failure("--define-file", &format!("{}:{line}", path.display()), &what)
            })?);
        }
        defines.extend(self.define.iter().cloned());
        let commands = match &self.compile_commands {
            Some(path) => {
                let parsed = CompileCommands::parse(&text("--compile-commands", path)?, &parent_folder(path));
                let displayed_path = path.display().to_string();
                Some(Arc::new(
                    parsed.map_err(|error| {
                        invalid_value_failure("--compile-commands", &displayed_path, &error)
                    })?,
                ))
            }
            None => None,
        };
        if let Some(missing) = self.include.iter().find(|folder| !folder.is_dir()) {
            let missing = missing.display().to_string();
            return Err(invalid_value_failure("-I", &missing, "no such folder"));
        }
        Ok(Compilation {
            entry: self.entry.clone(),
            defines,
            includes: self.include.clone(),
            compiler: self.compiler.clone(),
            preprocess: self.preprocess.clone(),
            commands,
            overrides: self.spec.clone(),
            is_uncached: self.no_cache,
            subgroup_size: self.subgroup_size,
            ..Compilation::default()
        })
    }

    /// Returns the command-line words for these inputs.
    pub fn to_words(&self) -> Vec<String> {
        let position = |size: &[u32; 3]| size.map(|count| count.to_string()).join(",");
        let pairs = |pairs: &[(String, String)]| {
            pairs.iter().map(|(left, right)| format!("{left}={right}")).collect::<Vec<String>>()
        };
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
        let hlsl = (
            self.hlsl_execution.map(|execution| name_of(&HlslRules::EXECUTIONS, &execution)),
            self.hlsl_memory.map(|memory| name_of(&HlslRules::MEMORIES, &memory)),
        );
        let inputs = self.inputs.and_then(|inputs| Some(inputs.to_possible_value()?.get_name().to_owned()));
        let float = self.float.and_then(|float| Some(float.to_possible_value()?.get_name().to_owned()));
        let words: [(&str, Vec<String>); 23] = [
            ("--entry", self.entry.iter().cloned().collect()),
            ("--grid", self.grid.iter().map(position).collect()),
            ("--workgroup", self.workgroup.iter().map(position).collect()),
            ("--subgroup-size", self.subgroup_size.iter().map(u32::to_string).collect()),
            ("--hlsl-execution", hlsl.0.into_iter().collect()),
            ("--hlsl-memory", hlsl.1.into_iter().collect()),
            ("--spec", pairs(&self.spec)),
            ("--push", self.push.clone()),
            ("--buffer", pairs(&self.buffer)),
            ("--bind", pairs(&self.bind)),
            ("--image", pairs(&self.image)),
            ("--sampler", pairs(&self.sampler)),
            ("--rays", self.rays.iter().map(|rays| rays.name().to_owned()).collect()),
            ("--case", paths(self.case.as_slice())),
            ("--float", float.into_iter().collect()),
            ("--inputs", inputs.into_iter().collect()),
            ("--assert", self.assert.iter().cloned().collect()),
            ("--define", self.define.clone()),
            ("--include", paths(&self.include)),
            ("--define-file", paths(&self.define_file)),
            ("--compile-commands", paths(self.compile_commands.as_slice())),
            ("--preprocess", self.preprocess.iter().cloned().collect()),
            ("--compiler", self.compiler.iter().cloned().collect()),
        ];
        let flags = |(flag, values): (&str, Vec<String>)| {
            values.into_iter().flat_map(|value| [flag.to_owned(), value]).collect::<Vec<String>>()
        };
        words.into_iter().flat_map(flags).collect()
    }

    /// Converts the inputs to options of an analysis, and reads the files.
    ///
    /// # Errors
    /// Returns an error if a value or a file is invalid.
    pub fn to_options(&self, unroll: Option<u32>) -> Result<AnalysisOptions, Failure> {
        let mut options = AnalysisOptions {
            entry: self.entry.clone(),
            grid: self.grid,
            workgroups: self.workgroup.clone(),
            subgroup_size: self.subgroup_size,
            hlsl: self.hlsl_rules(),
            has_exact_floats: self.float == Some(FloatWord::Exact),
            unroll,
            ..AnalysisOptions::default()
        };
        for (id, value) in &self.spec {
            if !is_constant_id(id) {
                options.named_constants.insert(id.clone(), value.clone());
                continue;
            }
            let number = id.parse().map_err(|_| {
                invalid_value_failure("--spec", id, "not the id of a specialization constant, such as 0")
            })?;
            let value = match value.as_str() {
                "true" => 1,
                "false" => 0,
                value => match (inputs::parse_integer(value, 64), value.parse::<f32>()) {
                    (Some(integer), _) => integer,
                    (None, Ok(float)) => u64::from(float.to_bits()),
                    (None, Err(_)) => return Err(invalid_value_failure("--spec", value, "not a number")),
                },
            };
            options.specialization.insert(number, value);
        }
        for text in &self.push {
            if let Some((name, values)) = text.split_once('=')
                && name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            {
                let values = values.split(',').map(|value| value.trim().to_owned()).collect();
                options.named_members.insert(name.trim().to_owned(), values);
                continue;
            }
            let (mut at, bytes) = match text.split_once('=') {
                Some((offset, values)) => {
                    let at = inputs::parse_integer(offset, 63)
                        .ok_or_else(|| invalid_value_failure("--push", offset, "not an offset in bytes"))?;
                    if !at.is_multiple_of(4) {
                        return Err(invalid_value_failure("--push", offset, "not a multiple of 4"));
                    }
                    let mut bytes = Vec::new();
                    for value in values.split(',') {
                        let value = inputs::parse_integer(value.trim(), 32)
                            .ok_or_else(|| invalid_value_failure("--push", value, "not a 32-bit integer"))?;
                        bytes.extend((value as u32).to_le_bytes());
                    }
                    (at, bytes)
                }
                None => (0, read_input("--push", text)?),
            };
            for byte in bytes {
                options.push.insert(at, byte);
                at += 1;
            }
        }
        for (member, name) in &self.bind {
            let at = inputs::AddressTarget::parse(member);
            let at = at.ok_or_else(|| {
                invalid_value_failure(
                    "--bind",
                    member,
                    "expected push@OFFSET, SET.BINDING@OFFSET or BLOCK.MEMBER",
                )
            })?;
            let bytes = inputs::fill_bytes("zeros", DEFAULT_BUFFER_BYTES).unwrap_or_default();
            options.addresses.push(inputs::AddressInput { name: name.clone(), at, offset: 0, bytes });
        }
        for (name, value) in &self.buffer {
            let is_bound = options.addresses.iter().any(|address| address.name == *name);
            if !is_bound && inputs::parse_binding(name).is_none() && is_list_of_numbers(value) {
                let values = value.split(',').map(|value| value.trim().to_owned()).collect();
                options.named_members.insert(name.clone(), values);
                continue;
            }
            let contents = parse_contents(value)?;
            let mut bound = options.addresses.iter_mut().filter(|address| address.name == *name).peekable();
            if bound.peek().is_some() {
                bound.for_each(|address| address.bytes.clone_from(&contents));
            } else {
                match inputs::parse_binding(name) {
                    Some(binding) => _ = options.buffers.insert(binding, contents.into()),
                    None => _ = options.named_buffers.insert(name.clone(), contents.into()),
                }
            }
        }
        for (name, value) in &self.image {
            let (size, file) = match value.split_once(",file=") {
                Some((size, file)) => (size, Some(file)),
                None => (value.as_str(), None),
            };
            let image = inputs::ImageInput::parse(size);
            let mut image = image.ok_or_else(|| {
                invalid_value_failure("--image", value, "expected an image such as 64x64,fill=iota")
            })?;
            if let Some(file) = file {
                let bytes = parse_contents(file)?;
                let format = image.format.and_then(TexelFormat::from_spirv_format);
                image.texels = inputs::TexelInput::Bytes(match format {
                    Some(format) => unpack_texels(format, &bytes),
                    None => bytes,
                });
            }
            match inputs::parse_binding(name) {
                Some(binding) => _ = options.images.insert(binding, image),
                None => _ = options.named_images.insert(name.clone(), image),
            }
        }
        for (name, value) in &self.sampler {
            let sampler = entry_point::inputs::Sampler::parse(value);
            let sampler = sampler.ok_or_else(|| {
                invalid_value_failure("--sampler", value, "expected a sampler such as linear,clamp")
            })?;
            match inputs::parse_binding(name) {
                Some(binding) => _ = options.samplers.insert(binding, sampler),
                None => _ = options.named_samplers.insert(name.clone(), sampler),
            }
        }
        options.needs_all_inputs = self.inputs == Some(InputWord::Given);
        options.ray_queries = self.rays;
        if let Some(text) = &self.assert {
            let formula = spirv_reader::annotations::parse_formula(text);
            options.assertion =
                Some(formula.map_err(|error| invalid_value_failure("--assert", text, &error.to_string()))?);
        }
        if let Some(path) = &self.case {
            let displayed_path = path.display().to_string();
            let text = String::from_utf8_lossy(&read_input("--case", &displayed_path)?).into_owned();
            let folder = path.with_file_name("");
            let read_case_input = |name: &str| {
                let path = match self.allow_outside {
                    true => Ok(folder.join(name)),
                    false => path_inside(&folder, name),
                };
                let path = path.map_err(|why| format!("{why}, or pass --allow-outside"))?;
                unpack_contents(&path, read_limited(&path)?)
            };
            let case = inputs::parse_case_file(&text, &read_case_input)
                .map_err(|error| invalid_value_failure("--case", &displayed_path, &error.to_string()))?;
            options = inputs::merge_options(options, case.options);
        }
        Ok(options)
    }
}
