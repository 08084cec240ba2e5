//! Scripts that test compute shaders: their texts, buffers, dispatches, and expectations about contents.
//!
//! Amber ([`amber`]), vkrunner ([`shader_test`]) and LLVM's offload test suite ([`offload_test`]) have a parser each. A
//! script becomes the inputs of a shader for each dispatch, with the expectations after it as one claim, so that every
//! command reads it like a shader. The dispatches are ordered: one starts with the contents that those before it left.
//! A command outside the subset is refused by name. No command reads another file.

pub mod amber;
mod lexer;
pub mod offload_test;
pub mod shader_test;
mod values;
mod yaml;

use std::collections::{BTreeMap, HashSet};

use entry_point::AnalysisOptions;
use entry_point::inputs::{ImageInput, TexelInput};
use litmus::Comparison;
use spirv_reader::SpirvModule;
use spirv_reader::annotations::{Formula, FormulaTerm};

pub(crate) use lexer::Lexer;
pub use values::{DataType, Scalar};
pub(crate) use values::{Tolerance, compare_value};

/// Upper bound on the bytes of a buffer, and on the values that a script expects.
const MAX_BUFFER_BYTES: u64 = entry_point::inputs::MAX_BYTES;
const MAX_EXPECTED: usize = 1 << 16;
/// Upper bound on the dispatches of a script.
const MAX_RUNS: usize = 32;

/// The buffers of a script by name.
pub type ScriptBuffers = BTreeMap<String, ScriptBuffer>;

/// The dispatches of a script, in their order on the same buffers.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub runs: Vec<ScriptRun>,
    /// The buffers with their initial contents.
    pub buffers: ScriptBuffers,
    expected: usize,
}

/// A dispatch of a script.
#[derive(Clone, Debug)]
pub struct ScriptRun {
    pub shader: ShaderText,
    /// The options without contents of buffers.
    pub options: AnalysisOptions,
    pub dxc_flags: DxcFlags,
    /// The resources whose kind the script names, to be compared with the shader.
    pub resources: Vec<ScriptResource>,
    bindings: Vec<ScriptBinding>,
    /// The buffer of the push constants.
    push: Option<String>,
    /// Writes of the host before the dispatch.
    writes: Vec<HostWrite>,
    /// The expectations; the name of a term is that of a buffer.
    claims: Vec<Formula>,
    line: u32,
    column: u32,
}

/// A descriptor with its buffer.
#[derive(Clone, Debug)]
struct ScriptBinding {
    at: (u32, u32),
    buffer: String,
    is_written: bool,
    /// True for an image with the contents of the buffer.
    is_image: bool,
}

/// Values that the host writes to a buffer.
#[derive(Clone, Debug)]
struct HostWrite {
    buffer: String,
    ty: DataType,
    offset: u64,
    values: Vec<String>,
}

/// A buffer with its contents.
#[derive(Clone, Debug)]
pub struct ScriptBuffer {
    ty: DataType,
    bytes: Vec<u8>,
    /// Why the contents are not known.
    unknown: Option<&'static str>,
}

/// A resource of a script with its place.
#[derive(Clone, Debug)]
pub struct ScriptResource {
    pub binding: (u32, u32),
    /// True for an image or a texel buffer.
    pub is_image: bool,
    pub kind: String,
    pub line: u32,
    pub column: u32,
}

impl ScriptResource {
    /// Compares the resource with the descriptors of a module.
    ///
    /// # Errors
    /// If the module has another descriptor there, or none.
    pub fn check(&self, module: &SpirvModule) -> Result<(), ScriptError> {
        let ScriptResource { binding: (set, binding), is_image, kind, line, column } = self;
        let known = module.descriptors();
        let problem = if !known.contains(&self.binding) {
            let known: Vec<String> = known.iter().map(|(set, binding)| format!("{set}.{binding}")).collect();
            ScriptProblem::NoDescriptor(*set, *binding, known.join(", "))
        } else if module.is_handle_at(self.binding) != *is_image {
            let found = if *is_image { "a buffer" } else { "an image" };
            ScriptProblem::OtherKind(format!("`{kind}`"), *set, *binding, found)
        } else {
            return Ok(());
        };
        Err(ScriptError { line: *line, column: *column, problem })
    }
}

/// Flags of dxc that a script gives for its shader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DxcFlags {
    /// The target profile, such as `cs_6_5`.
    pub profile: Option<String>,
    pub others: Vec<String>,
}

/// The text of a shader, at its lines of the script.
#[derive(Clone, Debug)]
pub struct ShaderText {
    pub format: ShaderFormat,
    pub text: String,
}

impl ShaderText {
    /// Creates a text at its lines; assembly, whose first line is empty, gets the version of SPIR-V for an environment.
    fn new(format: ShaderFormat, text: String, environment: &str) -> Option<ShaderText> {
        let version = match environment {
            "vulkan1.0" => "1.0",
            "vulkan1.1" => "1.3",
            "vulkan1.1spv1.4" => "1.4",
            "vulkan1.2" => "1.5",
            "vulkan1.3" => "1.6",
            other => other.strip_prefix("spv")?,
        };
        let is_assembly = format == ShaderFormat::SpirvAssembly;
        let text = if is_assembly { format!("; Version: {version}{text}") } else { text };
        Some(ShaderText { format, text })
    }
}

/// The form of a shader in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderFormat {
    Glsl,
    Hlsl,
    SpirvAssembly,
    /// Words as hexadecimal numbers.
    SpirvWords,
}

/// A mistake in a script, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ScriptError {
    pub line: u32,
    pub column: u32,
    pub problem: ScriptProblem,
}

impl ScriptError {
    /// Returns the line, with the column if it is known.
    pub fn place(&self) -> String {
        if self.column > 1 { format!("{}:{}", self.line, self.column) } else { self.line.to_string() }
    }
}

/// A mistake in a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptProblem {
    #[error("`{0}`, where {1} is expected")]
    Unexpected(String, &'static str),
    #[error("the end of the script, where {0} is expected")]
    Ended(&'static str),
    #[error(
        "`{0}` is not supported; expected compute shaders in the script, buffers, dispatches, and expectations"
    )]
    Unsupported(String),
    #[error("no {0} `{1}`; expected one that is declared before")]
    Unknown(&'static str, String),
    #[error("a second {0}; expected one")]
    Repeated(&'static str),
    #[error("the key `{0}` twice; expected each key once")]
    RepeatedKey(String),
    #[error("{bytes} bytes in elements of {stride}; expected whole elements: change `Stride` or the data")]
    Stride { bytes: u64, stride: u64 },
    #[error("no descriptor {0}.{1} in the shader; expected one of {2}")]
    NoDescriptor(u32, u32, String),
    #[error("{0}, but the descriptor {1}.{2} of the shader is {3}; expected one kind")]
    OtherKind(String, u32, u32, &'static str),
    #[error(
        "nothing is bound to the descriptor {0}.{1} `{2}`, which the shader uses; expected a buffer or an image there"
    )]
    Unbound(u32, u32, String),
    #[error("no {0}; expected one")]
    Missing(&'static str),
    #[error("`{0}` is not a value of the type; expected {1}")]
    Value(String, &'static str),
    #[error("more than {0} {1}; expected fewer")]
    TooMany(u64, &'static str),
    #[error("{count} values for elements of {components}; expected whole elements")]
    PartialElement { count: usize, components: u64 },
    #[error("{end} bytes of a buffer of {size}; expected values within the buffer")]
    OutOfBounds { end: u64, size: u64 },
    #[error("buffers of {0} and {1} bytes; expected equal sizes")]
    Sizes(u64, u64),
    #[error("no dispatch {0}; expected 1 to {1}")]
    NoRun(usize, usize),
    #[error(
        "the contents of `{0}` are not known here: {1}; start another script with this dispatch, and give the buffer one of the \
         possible contents"
    )]
    UnknownContents(String, &'static str),
}

impl ScriptBuffer {
    fn new(ty: DataType, bytes: Vec<u8>) -> ScriptBuffer {
        ScriptBuffer { ty, bytes, unknown: None }
    }
}

impl ScriptRun {
    fn new(shader: ShaderText, options: AnalysisOptions, line: u32, column: u32) -> ScriptRun {
        let (dxc_flags, resources, bindings) = (DxcFlags::default(), Vec::new(), Vec::new());
        let (push, writes, claims) = (None, Vec::new(), Vec::new());
        ScriptRun { shader, options, dxc_flags, resources, bindings, push, writes, claims, line, column }
    }

    /// Compares the bindings and resources with the descriptors that the entry point of a module uses.
    ///
    /// # Errors
    /// If the module has another descriptor in a place, or one that is not bound.
    pub fn check_descriptors(&self, module: &SpirvModule) -> Result<(), ScriptError> {
        self.resources.iter().try_for_each(|resource| resource.check(module))?;
        // Of several entry points, each uses some descriptors.
        if module.entry_points.len() > 1 {
            return Ok(());
        }
        let code = module.functions.values().flat_map(|function| &function.code);
        let used: HashSet<u32> = code.flat_map(|one| module.operands_of(one)).copied().collect();
        let is_bound = |at: &(u32, u32)| {
            self.bindings.iter().any(|binding| binding.at == *at)
                || self.resources.iter().any(|resource| resource.binding == *at)
                || self.options.buffers.contains_key(at)
                || self.options.images.contains_key(at)
                || self.options.samplers.contains_key(at)
        };
        for at in module.descriptors().into_iter().filter(|at| !is_bound(at)) {
            if let Some(id) = module.variables_at(at).into_iter().find(|id| used.contains(id)) {
                let problem = ScriptProblem::Unbound(at.0, at.1, module.display_name(id));
                return Err(ScriptError { line: self.line, column: self.column, problem });
            }
        }
        Ok(())
    }

    /// Gives a descriptor an image with the contents of a buffer, whose texels have as many components of 32 bits as
    /// `channels`.
    fn add_image(
        &mut self,
        at: (u32, u32),
        buffer: &ScriptBuffer,
        channels: u32,
        size: Option<([u32; 3], u32)>,
    ) -> Result<(), ScriptProblem> {
        let scalar = buffer.ty.scalar;
        let bytes = scalar.bytes() as usize;
        if bytes != 4 || channels == 0 || channels > 4 {
            let what = format!("an image of {channels} components with {} bits", 8 * bytes);
            return Err(ScriptProblem::Unsupported(what));
        }
        let texel_bytes = bytes * channels as usize;
        let (size, levels) = size.unwrap_or(([(buffer.bytes.len() / texel_bytes) as u32, 1, 1], 1));
        let one = if matches!(scalar, Scalar::Float(_)) { 1.0_f32.to_bits() } else { 1 };
        let mut texels = Vec::with_capacity(buffer.bytes.len() / texel_bytes * 16);
        for texel in buffer.bytes.chunks_exact(texel_bytes) {
            texels.extend_from_slice(texel);
            // A component that the format lacks is zero, and the last one is one.
            for component in channels..4 {
                texels.extend(if component == 3 { one } else { 0 }.to_le_bytes());
            }
        }
        let image = ImageInput::new(&size, levels, TexelInput::Bytes(texels));
        let image = image.ok_or(ScriptProblem::Missing("size of an image in range"))?;
        self.options.images.insert(at, image);
        Ok(())
    }

    /// Returns the options with the contents of buffers, to which the host writes first, and the expectations as one
    /// claim.
    ///
    /// # Errors
    /// If the contents of a buffer are not known.
    pub fn to_options(&self, buffers: &mut ScriptBuffers) -> Result<AnalysisOptions, ScriptError> {
        let placed = |problem| ScriptError { line: self.line, column: self.column, problem };
        for HostWrite { buffer, ty, offset, values } in &self.writes {
            if let Some(buffer) = buffers.get_mut(buffer) {
                ty.write(&mut buffer.bytes, *offset, values).map_err(placed)?;
            }
        }
        let known = |name: &str| match buffers.get(name) {
            Some(ScriptBuffer { unknown: Some(why), .. }) => {
                Err(placed(ScriptProblem::UnknownContents(name.to_owned(), why)))
            }
            Some(buffer) => Ok(buffer),
            None => Err(placed(ScriptProblem::Unknown("buffer", name.to_owned()))),
        };
        let mut options = self.options.clone();
        let mut written: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for ScriptBinding { at, buffer: name, is_written, is_image } in &self.bindings {
            let buffer = known(name)?;
            match written.get(name.as_str()) {
                // The same memory at another binding.
                Some(first) if *is_written && !is_image => {
                    options.aliases.insert(*at, *first);
                    continue;
                }
                _ if !is_image => _ = options.buffers.insert(*at, buffer.bytes.clone().into()),
                _ => {}
            }
            if *is_written {
                written.insert(name, *at);
            }
        }
        if let Some(push) = &self.push {
            options.push = (0..).zip(known(push)?.bytes.iter().copied()).collect();
        }
        let (mut claim, mut unknown) = (Formula::And(self.claims.clone()), None);
        claim.for_each_term(&mut |term| {
            let FormulaTerm::Bytes { name, binding, offset, bytes, initial } = term else { return };
            let Some(name) = name.take() else { return };
            match (written.get(name.as_str()), known(&name)) {
                (_, Err(error)) => unknown = Some(error),
                (place, Ok(buffer)) => {
                    let range = *offset as usize..*offset as usize + *bytes as usize;
                    let contents = buffer.bytes.get(range).unwrap_or_default();
                    *initial = contents.iter().rev().fold(0, |value, byte| value << 8 | i64::from(*byte));
                    match place {
                        Some(place) => *binding = *place,
                        None => *term = FormulaTerm::Number(*initial),
                    }
                }
            }
        });
        unknown.map_or(Ok(()), Err)?;
        options.assertion = (!self.claims.is_empty()).then_some(claim);
        Ok(options)
    }

    /// Sets the contents that the dispatch leaves; `final_bytes` returns those of a descriptor, or why they are not known.
    pub fn update_buffers(
        &self,
        buffers: &mut ScriptBuffers,
        final_bytes: impl Fn((u32, u32)) -> Option<Result<Vec<u8>, &'static str>>,
    ) {
        for binding in self.bindings.iter().filter(|binding| binding.is_written) {
            let Some(buffer) = buffers.get_mut(&binding.buffer) else { continue };
            if binding.is_image {
                buffer.unknown = Some("a dispatch before writes the image");
                continue;
            }
            match final_bytes(binding.at) {
                Some(Ok(bytes)) => buffer.bytes.iter_mut().zip(bytes).for_each(|(byte, new)| *byte = new),
                Some(Err(why)) => buffer.unknown = Some(why),
                None => {}
            }
        }
    }
}

/// The first byte of expected values in a buffer, and the line of the expectation.
#[derive(Clone, Copy, Debug)]
struct ScriptPlace<'s> {
    line: u32,
    name: &'s str,
    offset: u64,
}

impl Script {
    fn buffer(&self, name: &str) -> Result<&ScriptBuffer, ScriptProblem> {
        self.buffers.get(name).ok_or_else(|| ScriptProblem::Unknown("buffer", name.to_owned()))
    }

    /// Adds a dispatch.
    fn add_run(&mut self, run: ScriptRun) -> Result<(), ScriptProblem> {
        if self.runs.len() == MAX_RUNS {
            return Err(ScriptProblem::TooMany(MAX_RUNS as u64, "dispatches"));
        }
        self.runs.push(run);
        Ok(())
    }

    /// Returns the number at a place of a buffer.
    fn term_at(&self, name: &str, offset: u64, bytes: u32) -> Result<FormulaTerm, ScriptProblem> {
        let size = self.buffer(name)?.bytes.len() as u64;
        let end = offset.saturating_add(bytes.into());
        if end > size {
            return Err(ScriptProblem::OutOfBounds { end, size });
        }
        let name = Some(name.to_owned());
        Ok(FormulaTerm::Bytes { name, binding: (0, 0), offset, bytes, initial: 0 })
    }

    /// Adds the claim of a line about values of buffers, for the last dispatch that may have written one.
    fn expect(&mut self, line: u32, names: &[&str], claim: Formula) -> Result<(), ScriptProblem> {
        self.expected += 1;
        if self.expected > MAX_EXPECTED {
            return Err(ScriptProblem::TooMany(MAX_EXPECTED as u64, "expected values"));
        }
        let writes = |run: &ScriptRun| {
            let mut written = run.bindings.iter().filter(|binding| binding.is_written);
            written.any(|binding| names.contains(&binding.buffer.as_str()))
        };
        let last = self.runs.len().saturating_sub(1);
        let index = self.runs.iter().rposition(writes).unwrap_or(last);
        let run =
            self.runs.get_mut(index).ok_or(ScriptProblem::Missing("dispatch before this expectation"))?;
        run.claims.push(Formula::AtLine(line, Box::new(claim)));
        Ok(())
    }

    /// Expects values of a type at an offset of a buffer, one per component.
    fn expect_values(
        &mut self,
        place: ScriptPlace<'_>,
        ty: &DataType,
        comparison: Comparison,
        values: &[&str],
        tolerances: &[Tolerance],
    ) -> Result<(), ScriptProblem> {
        let ScriptPlace { line, name, offset } = place;
        for (index, text) in (0..).zip(values) {
            let at = offset.saturating_add(ty.component_offset(index));
            let term = self.term_at(name, at, ty.scalar.bytes())?;
            let rows = u64::from(ty.rows.max(1));
            let tolerance = match tolerances {
                [] => None,
                [only] => Some(*only),
                several => several.get((index % rows) as usize).copied(),
            };
            self.expect(line, &[name], compare_value(ty.scalar, term, comparison, text, tolerance)?)?;
        }
        Ok(())
    }

    /// Expects two buffers to have equal contents.
    fn expect_equal(&mut self, line: u32, first: &str, second: &str) -> Result<(), ScriptProblem> {
        let ty = self.buffer(first)?.ty;
        let (size, other) = (self.buffer(first)?.bytes.len() as u64, self.buffer(second)?.bytes.len() as u64);
        if size != other {
            return Err(ScriptProblem::Sizes(size, other));
        }
        let bytes = ty.scalar.bytes();
        let offsets = (0..).map(|index| ty.component_offset(index));
        for at in offsets.take_while(|at| at + u64::from(bytes) <= size) {
            let equal =
                Formula::Compare(self.term_at(first, at, bytes)?, "==", self.term_at(second, at, bytes)?);
            self.expect(line, &[first, second], equal)?;
        }
        Ok(())
    }
}

/// Returns the bytes of a text of hexadecimal words.
pub fn decode_words(text: &str) -> Option<Vec<u8>> {
    let word = |word: &str| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let words = text.split([',', ' ', '\n', '\r', '\t']).filter(|part| !part.is_empty()).map(word);
    Some(words.collect::<Option<Vec<_>>>()?.into_iter().flat_map(u32::to_le_bytes).collect())
}
