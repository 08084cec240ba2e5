//! Scripts that test a compute shader: its text, buffers, one dispatch, and expectations about final contents.
//!
//! Amber ([`amber`]), vkrunner ([`shader_test`]) and LLVM's offload test suite ([`offload_test`]) have a parser each. A
//! script becomes the inputs of a shader, with its
//! expectations as one claim, so that every command reads it like a shader. A command outside the subset is refused by
//! name. No command reads another file.

pub mod amber;
mod lexer;
pub mod offload_test;
pub mod shader_test;
mod values;
mod yaml;

use std::collections::BTreeMap;

use entry_point::AnalysisOptions;
use litmus::Comparison;
use spirv_reader::SpirvModule;
use spirv_reader::annotations::{Formula, FormulaTerm};

pub(crate) use lexer::Lexer;
pub use values::{DataType, Scalar};
pub(crate) use values::{Tolerance, compare_value};

/// Upper bound on the bytes of a buffer, and on the values that a script expects.
const MAX_BUFFER_BYTES: u64 = entry_point::inputs::MAX_BYTES;
const MAX_EXPECTED: usize = 1 << 16;

/// A script with one dispatch.
#[derive(Clone, Debug)]
pub struct Script {
    pub shader: ShaderText,
    /// The dispatch, with the buffers and the claim.
    pub options: AnalysisOptions,
    pub dxc_flags: DxcFlags,
    /// The resources whose kind the script names, to be compared with the shader.
    pub resources: Vec<ScriptResource>,
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
            ScriptProblem::OtherKind(format!("`Kind: {kind}`"), *set, *binding, found)
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
        "`{0}` is not supported; expected a compute shader in the script, buffers, one dispatch, and expectations"
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
}

/// A buffer with its initial contents.
#[derive(Clone, Debug)]
struct ScriptBuffer {
    ty: DataType,
    bytes: Vec<u8>,
    /// The first storage binding, whose final contents the shader decides.
    binding: Option<(u32, u32)>,
}

/// The declarations of a script, as far as it is read.
#[derive(Debug, Default)]
struct ScriptBuilder {
    buffers: BTreeMap<String, ScriptBuffer>,
    options: AnalysisOptions,
    claims: Vec<Formula>,
    expected: usize,
    resources: Vec<ScriptResource>,
}

impl ScriptBuilder {
    fn buffer(&self, name: &str) -> Result<&ScriptBuffer, ScriptProblem> {
        self.buffers.get(name).ok_or_else(|| ScriptProblem::Unknown("buffer", name.to_owned()))
    }

    /// Returns the number at a place of a buffer: a term if the shader may write it.
    fn term_at(buffer: &ScriptBuffer, offset: u64, bytes: u32) -> Result<FormulaTerm, ScriptProblem> {
        let size = buffer.bytes.len() as u64;
        let end = offset.saturating_add(bytes.into());
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let contents = range.and_then(|(start, end)| buffer.bytes.get(start..end));
        let contents = contents.ok_or(ScriptProblem::OutOfBounds { end, size })?;
        let initial = contents.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte)) as i64;
        Ok(match buffer.binding {
            Some(binding) => FormulaTerm::Bytes { name: None, binding, offset, bytes, initial },
            None => FormulaTerm::Number(initial),
        })
    }

    /// Adds a claim about one value.
    fn expect(&mut self, claim: Formula) -> Result<(), ScriptProblem> {
        self.expected += 1;
        if self.expected > MAX_EXPECTED {
            return Err(ScriptProblem::TooMany(MAX_EXPECTED as u64, "expected values"));
        }
        self.claims.push(claim);
        Ok(())
    }

    /// Expects values of a type at an offset of a buffer, one per component.
    fn expect_values(
        &mut self,
        buffer: &ScriptBuffer,
        place: (&DataType, u64),
        comparison: Comparison,
        values: &[&str],
        tolerances: &[Tolerance],
    ) -> Result<(), ScriptProblem> {
        let (ty, offset) = place;
        for (index, text) in (0..).zip(values) {
            let at = offset.saturating_add(ty.component_offset(index));
            let term = ScriptBuilder::term_at(buffer, at, ty.scalar.bytes())?;
            let rows = u64::from(ty.rows.max(1));
            let tolerance = match tolerances {
                [] => None,
                [only] => Some(*only),
                several => several.get((index % rows) as usize).copied(),
            };
            self.expect(compare_value(ty.scalar, term, comparison, text, tolerance)?)?;
        }
        Ok(())
    }

    /// Expects two buffers to have equal contents.
    fn expect_equal(&mut self, first: &ScriptBuffer, second: &ScriptBuffer) -> Result<(), ScriptProblem> {
        let [size, other] = [first, second].map(|buffer| buffer.bytes.len() as u64);
        if size != other {
            return Err(ScriptProblem::Sizes(size, other));
        }
        let bytes = first.ty.scalar.bytes();
        let mut index = 0;
        while first.ty.component_offset(index) + u64::from(bytes) <= size {
            let at = first.ty.component_offset(index);
            let [left, right] =
                [ScriptBuilder::term_at(first, at, bytes)?, ScriptBuilder::term_at(second, at, bytes)?];
            self.expect(Formula::Compare(left, "==", right))?;
            index += 1;
        }
        Ok(())
    }

    /// Returns the script, with the claims as one.
    fn finish(mut self, shader: ShaderText) -> Script {
        if !self.claims.is_empty() {
            self.options.assertion = Some(Formula::And(self.claims));
        }
        let (dxc_flags, resources) = (DxcFlags::default(), self.resources);
        Script { shader, options: self.options, dxc_flags, resources }
    }
}

/// Returns the bytes of a text of hexadecimal words.
pub fn decode_words(text: &str) -> Option<Vec<u8>> {
    let word = |word: &str| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let words = text.split([',', ' ', '\n', '\r', '\t']).filter(|part| !part.is_empty()).map(word);
    Some(words.collect::<Option<Vec<_>>>()?.into_iter().flat_map(u32::to_le_bytes).collect())
}
