//! Folds specialization constants with the values of the interface.

use arithmetic::{Instruction as Computation, Kind, NumberShape, Operand as Given};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Op, Word};

use super::{Legalizer, id_of, instruction};
use crate::instruction::{LoadError, malformed_module};

impl Legalizer<'_> {
    /// Declares a constant from its numbers.
    pub(super) fn constant(&mut self, ty: Word, result: Word, numbers: &[u64]) -> Result<(), LoadError> {
        let of = self.types.get(&ty).map(|of| of.class.opcode);
        match (of, numbers) {
            (Some(Op::TypeBool), [number]) => {
                self.constants.insert(result, (ty, vec![*number as u32]));
                let op = if *number != 0 { Op::ConstantTrue } else { Op::ConstantFalse };
                self.head.push(instruction(op, Some(ty), Some(result), Vec::new()));
            }
            (Some(Op::TypeInt | Op::TypeFloat), [number]) => {
                let wide = self.shape(ty).is_some_and(|shape| shape.bits > 32);
                let (low, high) = (*number as u32, (*number >> 32) as u32);
                let (words, operand) = match wide {
                    true => (vec![low, high], Operand::LiteralBit64(*number)),
                    false => (vec![low], Operand::LiteralBit32(low)),
                };
                self.constants.insert(result, (ty, words));
                self.head.push(instruction(Op::Constant, Some(ty), Some(result), vec![operand]));
            }
            (Some(Op::TypeVector), numbers) => {
                let element = self.types.get(&ty).map(|of| id_of(of, 0)).transpose()?.unwrap_or(0);
                let mut parts = Vec::with_capacity(numbers.len());
                for number in numbers {
                    let part = self.fresh();
                    self.constant(element, part, &[*number])?;
                    parts.push(part);
                }
                self.composites.push((result, ty, parts));
            }
            _ => return Err(LoadError::Lacks("OpSpecConstantOp of this type".into())),
        }
        Ok(())
    }

    /// Folds a constant that an instruction computes.
    pub(super) fn computed(&mut self, own: &Instruction, word: usize) -> Result<(), LoadError> {
        let (Some(ty), Some(result), Some(Operand::LiteralSpecConstantOpInteger(op))) =
            (own.result_type, own.result_id, own.operands.first())
        else {
            return Err(malformed_module(word, "an invalid constant"));
        };
        let lacks = || LoadError::Lacks(format!("OpSpecConstantOp {op:?} of this type"));
        let ids: Vec<Word> = own
            .operands
            .iter()
            .skip(1)
            .map_while(|operand| match operand {
                Operand::IdRef(id) => Some(*id),
                _ => None,
            })
            .collect();
        let literals: Vec<usize> = own
            .operands
            .iter()
            .skip(1 + ids.len())
            .filter_map(|operand| match operand {
                Operand::LiteralBit32(number) => Some(*number as usize),
                _ => None,
            })
            .collect();
        let mut given = Vec::with_capacity(ids.len());
        for id in &ids {
            let (ty, numbers) = self.numbers(*id).ok_or_else(lacks)?;
            given.push((self.shape(ty).ok_or_else(lacks)?, numbers));
        }
        let to = self.shape(ty).ok_or_else(lacks)?;
        let numbers = |at: usize| given.get(at).map(|(_, numbers)| numbers.as_slice()).ok_or_else(lacks);
        let all = match op {
            Op::Select => {
                let (conditions, yes, no) = (numbers(0)?, numbers(1)?, numbers(2)?);
                let pairs = yes.iter().zip(no).enumerate();
                pairs
                    .map(|(at, (yes, no))| {
                        let last = conditions.len().saturating_sub(1);
                        let holds = conditions.get(at.min(last)).is_some_and(|holds| *holds != 0);
                        if holds { *yes } else { *no }
                    })
                    .collect()
            }
            Op::CompositeExtract | Op::VectorShuffle => {
                let all = [numbers(0)?, if *op == Op::VectorShuffle { numbers(1)? } else { &[] }].concat();
                let part = |at: &usize| all.get(*at).copied().ok_or_else(lacks);
                literals.iter().map(part).collect::<Result<Vec<_>, _>>()?
            }
            Op::CompositeInsert => {
                let mut all = numbers(1)?.to_vec();
                let place = literals.first().and_then(|at| all.get_mut(*at)).ok_or_else(lacks)?;
                *place = *numbers(0)?.first().ok_or_else(lacks)?;
                all
            }
            op => {
                let operands: Vec<Given<'_>> =
                    given.iter().map(|(shape, numbers)| Given { numbers, shape: *shape }).collect();
                let shapes: Vec<NumberShape> = given.iter().map(|(shape, _)| *shape).collect();
                let instruction = Computation::Core(*op);
                let known = instruction.is_known(&shapes, &[to]);
                let all = if known { instruction.compute(&operands, &[to]) } else { None };
                all.ok_or_else(lacks)?
            }
        };
        if all.len() != to.count() {
            return Err(lacks());
        }
        self.constant(ty, result, &all)
    }

    /// Returns the type and the numbers of a constant.
    fn numbers(&self, id: Word) -> Option<(Word, Vec<u64>)> {
        if let Some((ty, words)) = self.constants.get(&id) {
            return Some((*ty, vec![words.iter().rev().fold(0, |all, word| all << 32 | u64::from(*word))]));
        }
        let (_, ty, parts) = self.composites.iter().find(|(own, ..)| *own == id)?;
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            all.extend(self.numbers(*part)?.1);
        }
        Some((*ty, all))
    }

    /// Returns the shape of a number type.
    fn shape(&self, ty: Word) -> Option<NumberShape> {
        let of = self.types.get(&ty)?;
        let literal = |at: usize| match of.operands.get(at) {
            Some(Operand::LiteralBit32(number)) => Some(*number),
            _ => None,
        };
        let scalar = |kind, bits| NumberShape { kind, bits, rows: 1, columns: 1 };
        match of.class.opcode {
            Op::TypeBool => Some(scalar(Kind::Bool, 32)),
            Op::TypeInt => Some(scalar(Kind::Integer, literal(0)?)),
            Op::TypeFloat => Some(scalar(Kind::Float, literal(0)?)),
            Op::TypeVector => Some(NumberShape { rows: literal(1)?, ..self.shape(id_of(of, 0).ok()?)? }),
            _ => None,
        }
    }
}
