//! Amber scripts (`docs/amber_script.md` of Amber): compute shaders and buffers.
//!
//! A buffer has 32-bit or other scalars, vectors or matrices. The script has one `RUN`; expectations follow it.

use std::collections::BTreeMap;

use litmus::Comparison;

use super::{
    DataType, Lexer, MAX_BUFFER_BYTES, Scalar, Script, ScriptBuffer, ScriptBuilder, ScriptError,
    ScriptProblem, ShaderFormat, ShaderText, Tolerance,
};

/// A pipeline with its bindings.
#[derive(Clone, Debug, Default)]
struct Pipeline {
    shader: Option<String>,
    entry: Option<String>,
    constants: BTreeMap<u32, u64>,
    subgroup_size: Option<u32>,
    push: Option<String>,
    /// Set, binding and buffer; true for a storage buffer.
    bindings: Vec<((u32, u32), String, bool)>,
}

struct AmberParser<'t> {
    lexer: Lexer<'t>,
    builder: ScriptBuilder,
    files: BTreeMap<String, String>,
    shaders: BTreeMap<String, ShaderText>,
    pipelines: BTreeMap<String, Pipeline>,
    /// The shader of the dispatch.
    dispatched: Option<ShaderText>,
}

/// Parses a script.
///
/// # Errors
/// If a command is malformed or not supported.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut parser = AmberParser {
        lexer: Lexer::new(text),
        builder: ScriptBuilder::default(),
        files: BTreeMap::new(),
        shaders: BTreeMap::new(),
        pipelines: BTreeMap::new(),
        dispatched: None,
    };
    if !text.starts_with("#!amber") {
        return Err(parser.lexer.error(ScriptProblem::Missing("first line `#!amber`")));
    }
    while let Some(command) = parser.lexer.next_word() {
        parser.command(command)?;
    }
    let shader = parser.dispatched.ok_or_else(|| parser.lexer.error(ScriptProblem::Missing("RUN")))?;
    Ok(parser.builder.finish(shader))
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
                let text = self.block()?;
                self.files.insert(path, text);
                Ok(())
            }
            "SHADER" => self.shader(),
            "BUFFER" => self.buffer(),
            "PIPELINE" => {
                let kind = self.lexer.word("`compute`")?;
                if kind != "compute" {
                    return Err(self.unsupported(format!("PIPELINE {kind}")));
                }
                let name = self.lexer.word("a name")?.to_owned();
                self.pipeline(name, Pipeline::default())
            }
            "DERIVE_PIPELINE" => {
                let name = self.lexer.word("a name")?.to_owned();
                self.lexer.expect("FROM")?;
                let parent = self.lexer.word("a pipeline")?;
                let parent =
                    self.pipelines.get(parent).cloned().ok_or_else(|| self.unknown("pipeline", parent))?;
                self.pipeline(name, parent)
            }
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
        let format = match self.lexer.word("a format")? {
            "GLSL" => ShaderFormat::Glsl,
            "HLSL" => ShaderFormat::Hlsl,
            "SPIRV-ASM" => ShaderFormat::SpirvAssembly,
            "SPIRV-HEX" => ShaderFormat::SpirvWords,
            other => return Err(self.unsupported(format!("SHADER {stage} {name} {other}"))),
        };
        if self.lexer.take_if("TARGET_ENV") {
            self.lexer.word("an environment")?;
        }
        let text = if self.lexer.take_if("VIRTUAL_FILE") {
            let path = self.lexer.word("a path")?;
            self.files.get(path).cloned().ok_or_else(|| self.unknown("virtual file", path))?
        } else if self.lexer.take_if("FILE") {
            return Err(self.unsupported("FILE".to_owned()));
        } else {
            self.block()?
        };
        self.shaders.insert(name, ShaderText { format, text });
        Ok(())
    }

    fn data_type(&mut self) -> Result<DataType, ScriptError> {
        let word = self.lexer.word("a type")?;
        let word = word.strip_suffix("[]").unwrap_or(word);
        let (shape, scalar) = match word.split_once('<') {
            Some((shape, scalar)) => (shape, scalar.trim_end_matches('>')),
            None => ("", word),
        };
        let scalar = match scalar {
            "int8" => Scalar::Signed(8),
            "int16" => Scalar::Signed(16),
            "int32" => Scalar::Signed(32),
            "int64" => Scalar::Signed(64),
            "uint8" => Scalar::Unsigned(8),
            "uint16" => Scalar::Unsigned(16),
            "uint32" => Scalar::Unsigned(32),
            "uint64" => Scalar::Unsigned(64),
            "float" => Scalar::Float(32),
            "double" => Scalar::Float(64),
            _ => return Err(self.unsupported(format!("DATA_TYPE {word}"))),
        };
        let size = |text: &str| text.parse::<u32>().ok().filter(|size| (2..=4).contains(size));
        let shape = match shape {
            "" => Some((1, 1)),
            _ => match (
                shape.strip_prefix("vec"),
                shape.strip_prefix("mat").and_then(|sizes| sizes.split_once('x')),
            ) {
                (Some(rows), _) => size(rows).map(|rows| (rows, 1)),
                (None, Some((columns, rows))) => size(rows).zip(size(columns)),
                (None, None) => None,
            },
        };
        let (rows, columns) = shape.ok_or_else(|| self.unsupported(format!("DATA_TYPE {word}")))?;
        let is_std140 = self.lexer.take_if("STD140");
        if !is_std140 {
            self.lexer.take_if("STD430");
        }
        Ok(DataType { scalar, rows, columns, is_std140 })
    }

    fn buffer(&mut self) -> Result<(), ScriptError> {
        let name = self.lexer.word("a name")?.to_owned();
        if self.builder.buffers.contains_key(&name) {
            return Err(self.lexer.error(ScriptProblem::Repeated("buffer of this name")));
        }
        match self.lexer.word("`DATA_TYPE`")? {
            "DATA_TYPE" => {}
            other => return Err(self.unsupported(format!("BUFFER {name} {other}"))),
        }
        let ty = self.data_type()?;
        let mut bytes = Vec::new();
        let mut count = None;
        if self.lexer.take_if("SIZE") {
            let elements: u64 = self.lexer.number()?;
            if elements.saturating_mul(ty.stride()) > MAX_BUFFER_BYTES {
                return Err(self.lexer.error(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer")));
            }
            count = Some(elements);
            bytes.resize((elements * ty.stride()) as usize, 0);
        }
        let scalars = count.unwrap_or(0) * ty.components();
        match self.lexer.word("`DATA`, `FILL` or `SERIES_FROM`")? {
            "DATA" => {
                let values = self.lexer.numbers();
                self.lexer.expect("END")?;
                if !(values.len() as u64).is_multiple_of(ty.components()) {
                    let problem =
                        ScriptProblem::PartialElement { count: values.len(), components: ty.components() };
                    return Err(self.lexer.error(problem));
                }
                self.placed(ty.write(&mut bytes, 0, &values))?;
                let elements = values.len() as u64 / ty.components();
                let size = elements.saturating_mul(ty.stride()).min(MAX_BUFFER_BYTES);
                bytes.resize(bytes.len().max(size as usize), 0);
            }
            "FILL" => {
                let value = self.lexer.word("a value")?;
                self.placed(ty.write(&mut bytes, 0, &vec![value; scalars as usize]))?;
            }
            "SERIES_FROM" => {
                let start = self.lexer.word("a value")?;
                self.lexer.expect("INC_BY")?;
                let step = self.lexer.word("a value")?;
                let parsed = start.parse::<f64>().ok().zip(step.parse::<f64>().ok());
                let (start, step) = parsed.ok_or_else(|| self.lexer.unexpected("a number"))?;
                let value = |index: u64| start + step * index as f64;
                let values: Vec<String> = (0..scalars).map(|index| value(index).to_string()).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                self.placed(ty.write(&mut bytes, 0, &values))?;
            }
            other => return Err(self.unsupported(format!("BUFFER {name} {other}"))),
        }
        self.builder.buffers.insert(name, ScriptBuffer { ty, bytes, binding: None });
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
        self.placed(self.builder.buffer(&buffer).map(|_| ()))?;
        self.lexer.expect("AS")?;
        let is_storage = match self.lexer.word("a use")? {
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
        if pipeline.bindings.iter().any(|(_, other, kind)| *other == buffer && *kind != is_storage) {
            return Err(self.unsupported(format!("BIND BUFFER {buffer} AS storage and AS uniform")));
        }
        pipeline.bindings.push(((set, binding), buffer, is_storage));
        Ok(())
    }

    fn run(&mut self) -> Result<(), ScriptError> {
        if self.dispatched.is_some() {
            return Err(self.lexer.error(ScriptProblem::Repeated("RUN")));
        }
        let name = self.lexer.word("a pipeline")?;
        let pipeline = match self.pipelines.get(name).cloned() {
            Some(pipeline) => pipeline,
            None if name == "TIMED_EXECUTION" => return Err(self.unsupported(format!("RUN {name}"))),
            None => return Err(self.unknown("pipeline", name)),
        };
        let shader = pipeline.shader.as_ref().and_then(|shader| self.shaders.get(shader)).cloned();
        self.dispatched = Some(shader.ok_or_else(|| self.lexer.error(ScriptProblem::Missing("ATTACH")))?);
        let mut grid = [0; 3];
        for size in &mut grid {
            *size = self.lexer.number()?;
        }
        let options = &mut self.builder.options;
        options.grid = Some(grid);
        options.entry = Some(pipeline.entry.unwrap_or_else(|| "main".to_owned()));
        options.specialization = pipeline.constants.into_iter().collect();
        options.subgroup_size = pipeline.subgroup_size;
        if let Some(push) = pipeline.push.and_then(|push| self.builder.buffers.get(&push)) {
            options.push = (0..).zip(push.bytes.iter().copied()).collect();
        }
        for (at, name, is_storage) in pipeline.bindings {
            let Some(buffer) = self.builder.buffers.get_mut(&name) else { continue };
            match buffer.binding {
                // The same memory at another binding.
                Some(first) if is_storage => {
                    options.aliases.insert(at, first);
                }
                _ => {
                    options.buffers.insert(at, buffer.bytes.clone());
                    buffer.binding = buffer.binding.or(is_storage.then_some(at));
                }
            }
        }
        Ok(())
    }

    fn expectation(&mut self) -> Result<(), ScriptError> {
        if self.dispatched.is_none() {
            return Err(self.lexer.error(ScriptProblem::Missing("RUN before this expectation")));
        }
        let name = self.lexer.word("a buffer")?;
        let buffer = self.placed(self.builder.buffer(name).cloned())?;
        match self.lexer.word("`IDX` or `EQ_BUFFER`")? {
            "EQ_BUFFER" => {
                let other = self.lexer.word("a buffer")?;
                let other = self.placed(self.builder.buffer(other).cloned())?;
                let equal = self.builder.expect_equal(&buffer, &other);
                return self.placed(equal);
            }
            "IDX" => {}
            other => return Err(self.unsupported(format!("EXPECT {name} {other}"))),
        }
        let offset = self.lexer.number()?;
        let mut tolerances = Vec::new();
        if self.lexer.take_if("TOLERANCE") {
            for text in self.lexer.numbers() {
                let tolerance = Tolerance::parse(text).ok_or_else(|| self.lexer.unexpected("a tolerance"))?;
                tolerances.push(tolerance);
            }
        }
        let comparison = match self.lexer.word("a comparison")? {
            "EQ" => Comparison::Equal,
            "NE" => Comparison::NotEqual,
            "LT" => Comparison::Less,
            "LE" => Comparison::LessOrEqual,
            "GT" => Comparison::Greater,
            "GE" => Comparison::GreaterOrEqual,
            other => return Err(self.unsupported(format!("EXPECT {name} IDX {offset} {other}"))),
        };
        let values = self.lexer.numbers();
        if values.is_empty() {
            self.lexer.word("a value")?;
            return Err(self.lexer.unexpected("a value"));
        }
        let place = (&buffer.ty, offset);
        let expected = self.builder.expect_values(&buffer, place, comparison, &values, &tolerances);
        self.placed(expected)
    }
}
