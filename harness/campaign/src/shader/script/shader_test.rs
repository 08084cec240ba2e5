//! Tests of vkrunner (`.shader_test`): a compute shader, its buffers, and probes of their final contents.
//!
//! The commands are those of vkrunner's README and of `docs/vk_script.md` of Amber. A test has one `compute`; probes
//! follow it.

use litmus::Comparison;

use super::{
    DataType, Lexer, MAX_BUFFER_BYTES, Scalar, Script, ScriptBuffer, ScriptBuilder, ScriptError,
    ScriptProblem, ShaderFormat, ShaderText, Tolerance,
};

/// The allowed difference of `~=` without a `tolerance`.
const DEFAULT_TOLERANCE: Tolerance = Tolerance::Absolute(0.01);

struct TestParser<'t> {
    lexer: Lexer<'t>,
    builder: ScriptBuilder,
    shader: Option<ShaderText>,
    push: Vec<u8>,
    tolerances: Vec<Tolerance>,
    is_std140: [bool; 3],
    has_run: bool,
}

/// The layouts that a test may change: those of push constants, uniform and storage buffers.
const LAYOUTS: [&str; 3] = ["push", "ubo", "ssbo"];

/// Parses a test.
///
/// # Errors
/// If a command is malformed or not supported.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut parser = TestParser {
        lexer: Lexer::new(text),
        builder: ScriptBuilder::default(),
        shader: None,
        push: Vec::new(),
        tolerances: vec![DEFAULT_TOLERANCE],
        is_std140: [false, true, false],
        has_run: false,
    };
    while let Some(word) = parser.lexer.next_word() {
        if !word.starts_with('[') {
            return Err(parser.lexer.unexpected("a section such as `[compute shader]`"));
        }
        let mut section = word.to_owned();
        while !section.ends_with(']') {
            section += &format!(" {}", parser.lexer.word("`]`")?);
        }
        parser.section(&section)?;
    }
    let TestParser { lexer, mut builder, shader, push, has_run, .. } = parser;
    let shader = shader.ok_or_else(|| lexer.error(ScriptProblem::Missing("[compute shader]")))?;
    if !has_run {
        return Err(lexer.error(ScriptProblem::Missing("`compute` in [test]")));
    }
    builder.options.push = (0..).zip(push).collect();
    Ok(builder.finish(shader))
}

impl TestParser<'_> {
    fn section(&mut self, section: &str) -> Result<(), ScriptError> {
        let format = match section {
            "[compute shader]" => ShaderFormat::Glsl,
            "[compute shader spirv]" => ShaderFormat::SpirvAssembly,
            "[compute shader binary]" => ShaderFormat::SpirvWords,
            "[test]" => return self.test(),
            // Requirements come from the module.
            "[require]" | "[comment]" => {
                self.text();
                return Ok(());
            }
            other => return Err(self.unsupported(other.to_owned())),
        };
        if self.shader.is_some() {
            return Err(self.lexer.error(ScriptProblem::Repeated("compute shader")));
        }
        self.shader = Some(ShaderText { format, text: self.text() });
        Ok(())
    }

    /// Returns the text up to the next section.
    fn text(&mut self) -> String {
        self.lexer.block(|line| line.starts_with('['))
    }

    fn unsupported(&self, what: String) -> ScriptError {
        self.lexer.error(ScriptProblem::Unsupported(what))
    }

    fn placed<T>(&self, result: Result<T, ScriptProblem>) -> Result<T, ScriptError> {
        result.map_err(|problem| self.lexer.error(problem))
    }

    fn test(&mut self) -> Result<(), ScriptError> {
        while let Some(command) = self.lexer.peek().filter(|word| !word.starts_with('[')) {
            self.lexer.next_word();
            match command {
                "ssbo" | "ubo" | "push" | "uniform" if self.has_run => {
                    return Err(self.unsupported(format!("{command} after the dispatch")));
                }
                "ssbo" | "ubo" | "push" => self.buffer(command)?,
                "uniform" if self.lexer.take_if("ubo") => self.buffer("ubo")?,
                "uniform" => {
                    let ty = self.data_type(0)?;
                    let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
                    ty.write(&mut self.push, offset, &values).map_err(|problem| self.lexer.error(problem))?;
                }
                "compute" => self.compute()?,
                "probe" => self.probe()?,
                "tolerance" => {
                    let tolerances = self.lexer.numbers().into_iter().map(Tolerance::parse).collect();
                    self.tolerances = Option::ok_or_else(tolerances, || self.lexer.unexpected("tolerances"))?;
                }
                other => return Err(self.unsupported(other.to_owned())),
            }
        }
        Ok(())
    }

    /// Reads `SET:BINDING` or `BINDING`.
    fn descriptor(&mut self) -> Result<(u32, u32), ScriptError> {
        let word = self.lexer.word("SET:BINDING")?;
        let (set, binding) = word.split_once(':').unwrap_or(("0", word));
        let place = set.parse().ok().zip(binding.parse().ok());
        place.ok_or_else(|| self.lexer.unexpected("SET:BINDING"))
    }

    fn buffer(&mut self, kind: &str) -> Result<(), ScriptError> {
        let layout = LAYOUTS.iter().position(|name| *name == kind).unwrap_or_default();
        if self.lexer.take_if("layout") {
            self.is_std140[layout] = match self.lexer.word("`std140` or `std430`")? {
                "std140" => true,
                "std430" => false,
                other => return Err(self.unsupported(format!("{kind} layout {other}"))),
            };
            return Ok(());
        }
        if kind == "push" {
            let ty = self.data_type(layout)?;
            let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
            return ty.write(&mut self.push, offset, &values).map_err(|problem| self.lexer.error(problem));
        }
        let place = self.descriptor()?;
        let is_subdata = self.lexer.take_if("subdata");
        let name = format!("{}:{}", place.0, place.1);
        let known = self.builder.buffers.remove(&name);
        let mut bytes = known.map(|buffer| buffer.bytes).unwrap_or_default();
        let mut ty = DataType::scalar(Scalar::Unsigned(8));
        // Without `subdata`, a number is a size.
        if !is_subdata && self.lexer.peek().is_some_and(|word| word.parse::<u64>().is_ok()) {
            let size: u64 = self.lexer.number()?;
            if size > MAX_BUFFER_BYTES {
                return Err(self.lexer.error(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer")));
            }
            bytes.resize(bytes.len().max(size as usize), 0);
        } else {
            ty = self.data_type(layout)?;
            let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
            self.placed(ty.write(&mut bytes, offset, &values))?;
        }
        let binding = (kind == "ssbo").then_some(place);
        self.builder.options.buffers.insert(place, bytes.clone());
        self.builder.buffers.insert(name, ScriptBuffer { ty, bytes, binding });
        Ok(())
    }

    fn data_type(&mut self, layout: usize) -> Result<DataType, ScriptError> {
        let word = self.lexer.word("a type")?;
        let scalars = [
            ("int8_t", "i8vec", Scalar::Signed(8)),
            ("uint8_t", "u8vec", Scalar::Unsigned(8)),
            ("int16_t", "i16vec", Scalar::Signed(16)),
            ("uint16_t", "u16vec", Scalar::Unsigned(16)),
            ("int", "ivec", Scalar::Signed(32)),
            ("uint", "uvec", Scalar::Unsigned(32)),
            ("int64_t", "i64vec", Scalar::Signed(64)),
            ("uint64_t", "u64vec", Scalar::Unsigned(64)),
            ("float", "vec", Scalar::Float(32)),
            ("double", "dvec", Scalar::Float(64)),
        ];
        let size = |text: &str| text.parse::<u32>().ok().filter(|size| (2..=4).contains(size));
        let sizes = |text: &str| match text.split_once('x') {
            Some((columns, rows)) => size(rows).zip(size(columns)),
            None => size(text).map(|size| (size, size)),
        };
        let is_std140 = self.is_std140[layout];
        let typed = |scalar, (rows, columns)| DataType { scalar, rows, columns, is_std140 };
        let scalar = scalars.into_iter().find_map(|(name, vector, scalar)| {
            let vector = || word.strip_prefix(vector).and_then(size).map(|rows| (rows, 1));
            let shape = if word == name { Some((1, 1)) } else { vector() };
            shape.map(|shape| typed(scalar, shape))
        });
        let matrix = [("mat", 32), ("dmat", 64)].into_iter().find_map(|(name, bits)| {
            let shape = word.strip_prefix(name).and_then(sizes)?;
            Some(typed(Scalar::Float(bits), shape))
        });
        scalar.or(matrix).ok_or_else(|| self.unsupported(word.to_owned()))
    }

    fn compute(&mut self) -> Result<(), ScriptError> {
        if self.lexer.take_if("entrypoint") {
            self.builder.options.entry = Some(self.lexer.word("a name")?.to_owned());
            return Ok(());
        }
        if std::mem::replace(&mut self.has_run, true) {
            return Err(self.lexer.error(ScriptProblem::Repeated("`compute`")));
        }
        let mut grid = [0; 3];
        for size in &mut grid {
            *size = self.lexer.number()?;
        }
        self.builder.options.grid = Some(grid);
        Ok(())
    }

    fn probe(&mut self) -> Result<(), ScriptError> {
        match self.lexer.word("`ssbo`")? {
            "ssbo" if self.has_run => {}
            "ssbo" => return Err(self.lexer.error(ScriptProblem::Missing("`compute` before this probe"))),
            other => return Err(self.unsupported(format!("probe {other}"))),
        }
        let ty = self.data_type(2)?;
        let (set, binding) = self.descriptor()?;
        let buffer = self.placed(self.builder.buffer(&format!("{set}:{binding}")).cloned())?;
        let offset = self.lexer.number()?;
        let word = self.lexer.word("a comparison")?;
        let comparison = match word {
            "==" | "~=" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return Err(self.lexer.unexpected("a comparison such as `==`")),
        };
        let values = self.lexer.numbers();
        if values.is_empty() {
            self.lexer.word("a value")?;
            return Err(self.lexer.unexpected("a value"));
        }
        let tolerances = if word == "~=" { self.tolerances.clone() } else { Vec::new() };
        let expected = self.builder.expect_values(&buffer, (&ty, offset), comparison, &values, &tolerances);
        self.placed(expected)
    }
}
