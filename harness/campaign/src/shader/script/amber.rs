//! Amber scripts (`docs/amber_script.md` of Amber): compute shaders and buffers.
//!
//! A buffer has scalars, vectors or matrices. `RUN` and `EXPECT` commands follow in any order, also in `REPEAT`.

use std::collections::BTreeMap;

use arithmetic::float_to_bits;
use entry_point::AnalysisOptions;
use litmus::Comparison;

use super::{
    DataType, Lexer, MAX_BUFFER_BYTES, MAX_RUNS, Scalar, Script, ScriptBinding, ScriptBuffer, ScriptError,
    ScriptPlace, ScriptProblem, ScriptResource, ScriptRun, ShaderFormat, ShaderText, Tolerance,
};

const AMBER_COMPARISONS: [(&str, Comparison); 6] = [
    ("EQ", Comparison::Equal),
    ("NE", Comparison::NotEqual),
    ("LT", Comparison::Less),
    ("LE", Comparison::LessOrEqual),
    ("GT", Comparison::Greater),
    ("GE", Comparison::GreaterOrEqual),
];

/// The limit of equal floats without `TOLERANCE` (`kEpsilon` of Amber's verifier).
const EQUAL_FLOATS: Tolerance = Tolerance::Percent(0.000_001);

/// The formats of images, with their components.
const IMAGE_FORMATS: [(&str, Scalar, u32); 6] = [
    ("R32_UINT", Scalar::Unsigned(32), 1),
    ("R32_SINT", Scalar::Signed(32), 1),
    ("R32_SFLOAT", Scalar::Float(32), 1),
    ("R32G32B32A32_UINT", Scalar::Unsigned(32), 4),
    ("R32G32B32A32_SINT", Scalar::Signed(32), 4),
    ("R32G32B32A32_SFLOAT", Scalar::Float(32), 4),
];

/// A pipeline with its bindings.
#[derive(Clone, Debug, Default)]
struct Pipeline {
    shader: Option<String>,
    entry: Option<String>,
    constants: BTreeMap<u32, u64>,
    subgroup_size: Option<u32>,
    push: Option<String>,
    bindings: Vec<ScriptBinding>,
    /// The images.
    resources: Vec<ScriptResource>,
}

struct AmberParser<'t> {
    lexer: Lexer<'t>,
    script: Script,
    files: BTreeMap<String, String>,
    shaders: BTreeMap<String, ShaderText>,
    pipelines: BTreeMap<String, Pipeline>,
    /// Width, height and depth of each image.
    images: BTreeMap<String, [u32; 3]>,
}

/// Parses a script.
///
/// # Errors
/// If a command is malformed or not supported.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut parser = AmberParser {
        lexer: Lexer::new(text),
        script: Script::default(),
        files: BTreeMap::new(),
        shaders: BTreeMap::new(),
        pipelines: BTreeMap::new(),
        images: BTreeMap::new(),
    };
    if !text.starts_with("#!amber") {
        return Err(parser.lexer.error(ScriptProblem::Missing("first line `#!amber`")));
    }
    while let Some(command) = parser.lexer.next_word() {
        parser.command(command)?;
    }
    if parser.script.runs.is_empty() {
        return Err(parser.lexer.error(ScriptProblem::Missing("RUN")));
    }
    Ok(parser.script)
}

impl AmberParser<'_> {
    fn command(&mut self, command: &str) -> Result<(), ScriptError> {
        match command {
            // The features come from the module.
            "DEVICE_FEATURE" | "DEVICE_EXTENSION" | "INSTANCE_EXTENSION" => {
                self.lexer.word("a name").map(|_| ())
            }
            "SET" => {
                self.lexer.expect("ENGINE_DATA")?;
                self.lexer.expect("fence_timeout_ms")?;
                self.lexer.number::<u32>().map(|_| ())
            }
            "VIRTUAL_FILE" => {
                let path = self.lexer.word("a path")?.to_owned();
                self.require_new(self.files.contains_key(&path), "virtual file of this name")?;
                let text = self.block()?;
                self.files.insert(path, text);
                Ok(())
            }
            "SHADER" => self.shader(),
            "BUFFER" => self.buffer(),
            "IMAGE" => self.image(),
            "PIPELINE" => {
                let kind = self.lexer.word("`compute`")?;
                if kind != "compute" {
                    return Err(self.unsupported(format!("PIPELINE {kind}")));
                }
                let name = self.new_pipeline()?;
                self.pipeline(name, Pipeline::default())
            }
            "DERIVE_PIPELINE" => {
                let name = self.new_pipeline()?;
                self.lexer.expect("FROM")?;
                let parent = self.lexer.word("a pipeline")?;
                let parent =
                    self.pipelines.get(parent).cloned().ok_or_else(|| self.unknown("pipeline", parent))?;
                self.pipeline(name, parent)
            }
            "REPEAT" => self.repeat(),
            "RUN" => self.run(),
            "EXPECT" => self.expectation(),
            other => Err(self.unsupported(other.to_owned())),
        }
    }

    fn unsupported(&self, what: String) -> ScriptError {
        self.lexer.error(ScriptProblem::Unsupported(what))
    }

    fn unknown(&self, kind: &'static str, name: &str) -> ScriptError {
        self.lexer.error(ScriptProblem::Unknown(kind, name.to_owned()))
    }

    /// Adds the place of the last word.
    fn placed<T>(&self, result: Result<T, ScriptProblem>) -> Result<T, ScriptError> {
        result.map_err(|problem| self.lexer.error(problem))
    }

    fn block(&mut self) -> Result<String, ScriptError> {
        let block = self.lexer.block(|line| line.trim() == "END");
        self.lexer.expect("END").map(|()| block)
    }

    fn shader(&mut self) -> Result<(), ScriptError> {
        let stage = self.lexer.word("a stage")?;
        if stage != "compute" && stage != "multi" {
            return Err(self.unsupported(format!("SHADER {stage}")));
        }
        let name = self.lexer.word("a name")?.to_owned();
        self.require_new(self.shaders.contains_key(&name), "shader of this name")?;
        let format = match self.lexer.word("a format")? {
            "GLSL" => ShaderFormat::Glsl,
            "HLSL" => ShaderFormat::Hlsl,
            "SPIRV-ASM" => ShaderFormat::SpirvAssembly,
            "SPIRV-HEX" => ShaderFormat::SpirvWords,
            other => return Err(self.unsupported(format!("SHADER {stage} {name} {other}"))),
        };
        let is_given = self.lexer.take_if("TARGET_ENV");
        let environment = if is_given { self.lexer.word("an environment")? } else { "spv1.0" };
        let unexpected = self.lexer.unexpected("an environment such as `spv1.3`");
        let text = if self.lexer.take_if("VIRTUAL_FILE") {
            let path = self.lexer.word("a path")?;
            self.files.get(path).cloned().ok_or_else(|| self.unknown("virtual file", path))?
        } else if self.lexer.take_if("FILE") {
            return Err(self.unsupported("FILE".to_owned()));
        } else {
            self.block()?
        };
        let shader = ShaderText::new(format, text, environment).ok_or(unexpected)?;
        self.shaders.insert(name, shader);
        Ok(())
    }

    fn data_type(&mut self) -> Result<DataType, ScriptError> {
        let word = self.lexer.word("a type")?;
        let expected = "a type such as `uint32`, `vec4<float>` or `mat2x3<double>`";
        let ty = DataType::from_amber(word).ok_or_else(|| self.lexer.unexpected(expected))?;
        let is_std140 = self.lexer.take_if("STD140");
        if !is_std140 {
            self.lexer.take_if("STD430");
        }
        Ok(DataType { is_std140, ..ty })
    }

    /// Returns an error at the last word, the name of `what`, if there is one already.
    fn require_new(&self, is_known: bool, what: &'static str) -> Result<(), ScriptError> {
        if is_known { Err(self.lexer.error(ScriptProblem::Repeated(what))) } else { Ok(()) }
    }

    fn new_name(&mut self) -> Result<String, ScriptError> {
        let name = self.lexer.word("a name")?.to_owned();
        self.require_new(self.script.buffers.contains_key(&name), "buffer of this name").map(|()| name)
    }

    fn new_pipeline(&mut self) -> Result<String, ScriptError> {
        let name = self.lexer.word("a name")?.to_owned();
        self.require_new(self.pipelines.contains_key(&name), "pipeline of this name").map(|()| name)
    }

    fn buffer(&mut self) -> Result<(), ScriptError> {
        let name = self.new_name()?;
        match self.lexer.word("`DATA_TYPE`")? {
            "DATA_TYPE" => {}
            other => return Err(self.unsupported(format!("BUFFER {name} {other}"))),
        }
        let ty = self.data_type()?;
        let count = if self.lexer.take_if("SIZE") { Some(self.lexer.number()?) } else { None };
        self.contents(name, ty, count)
    }

    fn image(&mut self) -> Result<(), ScriptError> {
        let name = self.new_name()?;
        let ty = match self.lexer.word("`FORMAT` or `DATA_TYPE`")? {
            "DATA_TYPE" => self.data_type()?,
            "FORMAT" => {
                let format = self.lexer.word("a format")?;
                let known = IMAGE_FORMATS.iter().find(|(known, ..)| *known == format);
                let unsupported = || self.unsupported(format!("IMAGE {name} FORMAT {format}"));
                let (_, scalar, rows) = known.ok_or_else(unsupported)?;
                DataType { rows: *rows, ..DataType::scalar(*scalar) }
            }
            other => return Err(self.unsupported(format!("IMAGE {name} {other}"))),
        };
        if ty.scalar.bytes() != 4 || ty.columns != 1 || ty.stride() != 4 * ty.components() {
            return Err(self.unsupported(format!("IMAGE {name} of this type")));
        }
        let axes = match self.lexer.word("`DIM_1D`, `DIM_2D` or `DIM_3D`")? {
            "DIM_1D" => 1,
            "DIM_2D" => 2,
            "DIM_3D" => 3,
            other => return Err(self.unsupported(format!("IMAGE {name} {other}"))),
        };
        let mut size = [1_u32; 3];
        for (axis, word) in size.iter_mut().zip(["WIDTH", "HEIGHT", "DEPTH"]).take(axes) {
            self.lexer.expect(word)?;
            *axis = self.lexer.number()?;
        }
        let count = size.iter().fold(1_u64, |count, axis| count.saturating_mul((*axis).into()));
        self.images.insert(name.clone(), size);
        self.contents(name, ty, Some(count))
    }

    /// Reads the initial contents of a buffer or an image.
    fn contents(&mut self, name: String, ty: DataType, count: Option<u64>) -> Result<(), ScriptError> {
        let mut bytes = Vec::new();
        if let Some(elements) = count {
            if elements.saturating_mul(ty.stride()) > MAX_BUFFER_BYTES {
                return Err(self.lexer.error(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer")));
            }
            bytes.resize((elements * ty.stride()) as usize, 0);
        }
        let scalars = count.unwrap_or(0) * ty.components();
        match self.lexer.word("`DATA`, `FILL` or `SERIES_FROM`")? {
            "DATA" => {
                let values = self.lexer.numbers();
                self.lexer.expect("END")?;
                let [size, expected] =
                    [values.len() as u64, scalars].map(|count| count * u64::from(ty.scalar.bytes()));
                if count.is_some() && size != expected {
                    return Err(self.lexer.error(ScriptProblem::Sizes(size, expected)));
                }
                if !(values.len() as u64).is_multiple_of(ty.components()) {
                    let problem =
                        ScriptProblem::PartialElement { count: values.len(), components: ty.components() };
                    return Err(self.lexer.error(problem));
                }
                self.placed(ty.write_bits(
                    &mut bytes,
                    0,
                    values.iter().map(|value| parse_contents(ty.scalar, value)),
                ))?;
                let elements = values.len() as u64 / ty.components();
                let size = elements.saturating_mul(ty.stride()).min(MAX_BUFFER_BYTES);
                bytes.resize(bytes.len().max(size as usize), 0);
            }
            "FILL" => {
                let bits = self.lexer.word("a value").map(|value| parse_contents(ty.scalar, value))?;
                let bits = self.placed(bits)?;
                self.placed(ty.write_bits(&mut bytes, 0, (0..scalars).map(|_| Ok(bits))))?;
            }
            "SERIES_FROM" => {
                let start = self.lexer.word("a value")?;
                self.lexer.expect("INC_BY")?;
                let step = self.lexer.word("a value")?;
                let parsed = start.parse::<f64>().ok().zip(step.parse::<f64>().ok());
                let (start, step) = parsed.ok_or_else(|| self.lexer.unexpected("a number"))?;
                let value = |index: u64| start + step * index as f64;
                let bits = (0..scalars).map(|index| match (ty.scalar, value(index)) {
                    (Scalar::Float(bits @ (32 | 64)), value) => Ok(float_to_bits(value, bits)),
                    // Many numbers of this kind are not worth a text each.
                    (Scalar::Unsigned(32 | 64), value)
                        if value.fract() == 0.0 && (0.0..4e9).contains(&value) =>
                    {
                        Ok(value as u64)
                    }
                    (scalar, value) => parse_contents(scalar, &value.to_string()),
                });
                self.placed(ty.write_bits(&mut bytes, 0, bits))?;
            }
            other => return Err(self.unsupported(format!("BUFFER {name} {other}"))),
        }
        self.script.buffers.insert(name, ScriptBuffer::new(ty, bytes));
        Ok(())
    }

    fn pipeline(&mut self, name: String, mut pipeline: Pipeline) -> Result<(), ScriptError> {
        loop {
            match self.lexer.word("`END`")? {
                "END" => break,
                "ATTACH" => self.attach(&mut pipeline)?,
                "SUBGROUP" => self.subgroup(&mut pipeline)?,
                "BIND" => self.bind(&mut pipeline)?,
                other => return Err(self.unsupported(format!("PIPELINE {other}"))),
            }
        }
        self.pipelines.insert(name, pipeline);
        Ok(())
    }

    fn attach(&mut self, pipeline: &mut Pipeline) -> Result<(), ScriptError> {
        let shader = self.lexer.word("a shader")?;
        if !self.shaders.contains_key(shader) {
            return Err(self.unknown("shader", shader));
        }
        pipeline.shader = Some(shader.to_owned());
        loop {
            if self.lexer.take_if("TYPE") {
                self.lexer.expect("compute")?;
            } else if self.lexer.take_if("ENTRY_POINT") {
                pipeline.entry = Some(self.lexer.word("a name")?.to_owned());
            } else if self.lexer.take_if("SPECIALIZE") {
                let id = self.lexer.number()?;
                self.lexer.expect("AS")?;
                let ty = self.data_type()?;
                let mut bytes = Vec::new();
                let value = self.lexer.word("a value")?;
                self.placed(ty.write(&mut bytes, 0, &[value]))?;
                let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                pipeline.constants.insert(id, bits);
            } else {
                return Ok(());
            }
        }
    }

    fn subgroup(&mut self, pipeline: &mut Pipeline) -> Result<(), ScriptError> {
        self.lexer.word("a shader")?;
        loop {
            match self.lexer.word("`END`")? {
                "END" => return Ok(()),
                "FULLY_POPULATED" | "VARYING_SIZE" => {
                    self.lexer.word("`on` or `off`")?;
                }
                "REQUIRED_SIZE" => {
                    let size: u32 = self.lexer.number()?;
                    if !size.is_power_of_two() || size > 128 {
                        return Err(self.lexer.unexpected("a power of two up to 128"));
                    }
                    pipeline.subgroup_size = Some(size);
                }
                other => return Err(self.unsupported(format!("SUBGROUP {other}"))),
            }
        }
    }

    fn bind(&mut self, pipeline: &mut Pipeline) -> Result<(), ScriptError> {
        match self.lexer.word("`BUFFER`")? {
            "BUFFER" => {}
            other => return Err(self.unsupported(format!("BIND {other}"))),
        }
        let buffer = self.lexer.word("a buffer")?.to_owned();
        self.placed(self.script.buffer(&buffer).map(|_| ()))?;
        self.lexer.expect("AS")?;
        let (line, column) = self.lexer.place();
        let size = self.images.get(&buffer).copied();
        let is_storage = match self.lexer.word("a use")? {
            "storage_image" if size.is_some() => true,
            other if size.is_some() => {
                return Err(self.unsupported(format!("BIND BUFFER {buffer} AS {other} of an image")));
            }
            "push_constant" => {
                pipeline.push = Some(buffer);
                return Ok(());
            }
            "storage" => true,
            "uniform" => false,
            other => return Err(self.unsupported(format!("BIND BUFFER {buffer} AS {other}"))),
        };
        self.lexer.expect("DESCRIPTOR_SET")?;
        let set = self.lexer.number()?;
        self.lexer.expect("BINDING")?;
        let binding = self.lexer.number()?;
        for (option, allowed) in [("DESCRIPTOR_OFFSET", "0"), ("DESCRIPTOR_RANGE", "-1")] {
            if self.lexer.take_if(option) && self.lexer.word("a number")? != allowed {
                return Err(self.unsupported(option.to_owned()));
            }
        }
        // A uniform buffer of the same memory would keep its first contents.
        if pipeline.bindings.iter().any(|other| other.buffer == buffer && other.is_written != is_storage) {
            return Err(self.unsupported(format!("BIND BUFFER {buffer} AS storage and AS uniform")));
        }
        let (at, is_image) = ((set, binding), size.is_some());
        // A later one replaces it, as in a derived pipeline.
        pipeline.bindings.retain(|other| other.at != at);
        pipeline.resources.retain(|other| other.binding != at);
        if is_image {
            let kind = "AS storage_image".to_owned();
            pipeline.resources.push(ScriptResource { binding: at, is_image, kind, line, column });
        }
        pipeline.bindings.push(ScriptBinding { at, buffer, is_written: is_storage, is_image });
        Ok(())
    }

    fn repeat(&mut self) -> Result<(), ScriptError> {
        let count: usize = self.lexer.number()?;
        if count > MAX_RUNS {
            return self.placed(Err(ScriptProblem::TooMany(MAX_RUNS as u64, "repetitions")));
        }
        let start = self.lexer.clone();
        for _ in 0..count {
            self.lexer = start.clone();
            loop {
                match self.lexer.word("`END`")? {
                    "END" => break,
                    command @ ("RUN" | "EXPECT") => self.command(command)?,
                    other => return Err(self.unsupported(format!("{other} in REPEAT"))),
                }
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ScriptError> {
        self.lexer.take_if("TIMED_EXECUTION");
        let name = self.lexer.word("a pipeline")?;
        let (line, column) = self.lexer.place();
        let pipeline = self.pipelines.get(name).cloned().ok_or_else(|| self.unknown("pipeline", name))?;
        let shader = pipeline.shader.as_ref().and_then(|shader| self.shaders.get(shader)).cloned();
        let shader = shader.ok_or_else(|| self.lexer.error(ScriptProblem::Missing("ATTACH")))?;
        let mut grid = [0; 3];
        for size in &mut grid {
            *size = self.lexer.number()?;
        }
        let options = AnalysisOptions {
            grid: Some(grid),
            entry: Some(pipeline.entry.unwrap_or_else(|| "main".to_owned())),
            specialization: pipeline.constants.into_iter().collect(),
            subgroup_size: pipeline.subgroup_size,
            ..AnalysisOptions::default()
        };
        let Pipeline { push, bindings, resources, .. } = pipeline;
        let mut run = ScriptRun { push, resources, ..ScriptRun::new(shader, options, line, column) };
        for ScriptBinding { at, buffer: name, .. } in &bindings {
            if let Some(size) = self.images.get(name) {
                let buffer = self.placed(self.script.buffer(name))?;
                let added = run.add_image(*at, buffer, buffer.ty.components() as u32, Some((*size, 1)));
                self.placed(added)?;
            }
        }
        let added = self.script.add_run(ScriptRun { bindings, ..run });
        self.placed(added)
    }

    fn expectation(&mut self) -> Result<(), ScriptError> {
        let name = self.lexer.word("a buffer")?;
        let (line, _) = self.lexer.place();
        let ty = self.placed(self.script.buffer(name).map(|buffer| buffer.ty))?;
        if self.images.contains_key(name) {
            return Err(self.unsupported(format!("EXPECT {name} of an image")));
        }
        match self.lexer.word("`IDX` or `EQ_BUFFER`")? {
            "EQ_BUFFER" => {
                let other = self.lexer.word("a buffer")?;
                if self.images.contains_key(other) {
                    return Err(self.unsupported(format!("EXPECT {name} EQ_BUFFER of an image")));
                }
                let equal = self.script.expect_equal(line, name, other);
                return self.placed(equal);
            }
            "IDX" => {}
            other => return Err(self.unsupported(format!("EXPECT {name} {other}"))),
        }
        let offset = self.lexer.number()?;
        let mut tolerances = Vec::new();
        let is_fuzzy = self.lexer.take_if("TOLERANCE");
        if is_fuzzy {
            for text in self.lexer.numbers() {
                let tolerance = Tolerance::parse(text).ok_or_else(|| self.lexer.unexpected("a tolerance"))?;
                tolerances.push(tolerance);
            }
            if tolerances.is_empty() {
                return Err(self.lexer.unexpected("a tolerance"));
            }
            // Amber's verifier of buffers reads no other.
            tolerances.truncate(1);
        } else if matches!(ty.scalar, Scalar::Float(_)) {
            tolerances.push(EQUAL_FLOATS);
        }
        let word = self.lexer.word("a comparison")?;
        let comparison = AMBER_COMPARISONS.iter().find(|(known, _)| *known == word);
        let unsupported = || {
            self.unsupported(format!(
                "EXPECT {name} IDX {offset}{} {word}",
                if is_fuzzy { " TOLERANCE" } else { "" }
            ))
        };
        let is_allowed =
            |(_, comparison): &&(&str, Comparison)| !is_fuzzy || *comparison == Comparison::Equal;
        let (_, comparison) = comparison.filter(is_allowed).ok_or_else(unsupported)?;
        let values = self.lexer.values()?;
        let place = ScriptPlace { line, name, offset };
        let expected = self.script.expect_values(place, &ty, *comparison, &values, &tolerances);
        self.placed(expected)
    }
}

/// Returns the bits of initial contents. Amber truncates floats to 16 bits and flushes denormals (`FloatToHexFloat16`).
fn parse_contents(scalar: Scalar, text: &str) -> Result<u64, ScriptProblem> {
    if scalar != Scalar::Float(16) {
        return scalar.parse(text);
    }
    let bits = Scalar::Float(32).parse(text)?;
    let (sign, exponent, mantissa) = (bits >> 31, bits >> 23 & 0xff, bits >> 13 & 0x3ff);
    Ok(match exponent.saturating_sub(112) {
        0 => sign << 15,
        31.. => return scalar.parse(text),
        exponent => sign << 15 | exponent << 10 | mantissa,
    })
}
