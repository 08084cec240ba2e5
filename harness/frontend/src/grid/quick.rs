//! Instructions that are done often, by what was looked up of them.

use std::rc::Rc;

use arithmetic::{Computation, Instruction, MOST, NumberShape, Operand, signed};
use rspirv::spirv::Op;
use rustc_hash::FxHashMap;

use crate::error::malformed;

use super::decode::{Chain, Edge, Making, Numbers, Part, Whole};
use super::machine::{Frame, Here, Invocation, Machine, SHARED, Step, Stop};
use super::memory::{Locals, Object};
use super::program::{Function, GLOBAL, Slots};
use super::setup::Descriptors;
use super::value::{LOCAL, Pointer, Taint, Value, of_result};

/// Numbers of all operands of an instruction at most.
const MOST_NUMBERS: usize = 48;
const NO_OPERAND: Operand<'_> = Operand {
    numbers: &[],
    shape: NumberShape { kind: arithmetic::Kind::Bool, bits: 32, rows: 0, columns: 0 },
};

/// What is known of an instruction before it is executed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Quick {
    /// Nothing: it is looked at whenever it is executed.
    #[default]
    Slow,
    /// It does nothing in its place.
    Pass,
    /// For each component of a vector something.
    Several {
        first: u32,
        count: u32,
    },
    /// A number of two others, or of one that is both.
    Binary {
        left: u32,
        right: u32,
        to: u32,
        op: Op,
        compute: Computation,
    },
    /// A number of others, by its number among [`Function::numbers`].
    Number(u32),
    Select {
        condition: u32,
        yes: u32,
        no: u32,
        to: u32,
    },
    /// On to another block, by the number of the edge.
    Jump(u32),
    Branch {
        condition: u32,
        yes: u32,
        no: u32,
    },
    /// A number from memory that no other invocation writes.
    Load {
        pointer: u32,
        to: u32,
        offset: u32,
        bytes: u32,
        truth: bool,
    },
    /// A number to memory that no other invocation reads.
    Store {
        pointer: u32,
        value: u32,
        offset: u32,
        bytes: u32,
    },
    /// A pointer to a part, by the number of the chain.
    Chain {
        pointer: u32,
        to: u32,
        chain: u32,
    },
    /// A part of a composite, by its number among [`Function::parts`].
    Part(u32),
    /// A composite that is no vector, by its number among [`Function::makings`].
    Make(u32),
    /// Numbers of all numbers of the operands together, by its number among [`Function::wholes`].
    Whole(u32),
    /// A variable of the function, without a first value.
    Variable {
        to: u32,
        id: u32,
        ty: u32,
        bytes: u32,
    },
    /// The beginning of a block, where nobody jumped to it.
    Label(u32),
}

/// The value in a slot.
#[inline]
pub(super) fn at<'v>(values: &'v [Value], globals: &'v [Value], slot: u32) -> Option<&'v Value> {
    match slot & GLOBAL {
        0 => values.get(slot as usize),
        _ => globals.get((slot & !GLOBAL) as usize),
    }
}

/// The value of an id.
pub(super) fn gathered(values: &[Value], globals: &[Value], slots: Slots) -> Option<Value> {
    if slots.count == 0 {
        return at(values, globals, slots.one()?).cloned();
    }
    let parts = slots.all().iter().map(|slot| at(values, globals, *slot).cloned());
    let parts = parts.collect::<Option<Rc<[Value]>>>()?;
    // Of what has no bits there are no components.
    let nothing = parts.iter().try_fold(0, |all: Taint, part| match part {
        Value::Nothing(taint) => Some(all | taint),
        _ => None,
    });
    Some(nothing.map_or(Value::Many(parts), Value::Nothing))
}

/// Gives an id its value.
pub(super) fn spread(values: &mut [Value], to: Slots, value: Value) -> Step<()> {
    let parts = match &value {
        Value::Many(parts) if to.count > 0 => {
            if parts.len() != usize::from(to.count) {
                return Err(malformed("a vector of another length").into());
            }
            &parts[..]
        }
        _ => &[],
    };
    for (index, slot) in to.all().iter().enumerate() {
        if let Some(place) = values.get_mut(*slot as usize) {
            *place = parts.get(index).unwrap_or(&value).clone();
        }
    }
    Ok(())
}

/// Gives an id of another frame the value of one.
pub(super) fn copied(
    globals: &[Value],
    values: &[Value],
    from: Slots,
    into: &mut [Value],
    to: Slots,
) -> Option<()> {
    if from.count != to.count {
        return None;
    }
    for (from, to) in from.all().iter().zip(to.all()) {
        let value = at(values, globals, *from)?.clone();
        if let Some(place) = into.get_mut(*to as usize) {
            *place = value;
        }
    }
    Some(())
}

/// What an instruction may look at and change.
struct Scene<'m> {
    function: &'m Function,
    globals: &'m [Value],
    objects: &'m [Object],
    locals: &'m mut Locals,
    /// Space for more of them.
    spare: &'m mut Vec<Object>,
    /// What chains lead to that are looked up when they are done.
    descriptors: &'m FxHashMap<u32, Descriptors>,
}

impl Scene<'_> {
    /// Does an instruction; `None` where what was looked up does not suffice, and it can be done anew.
    #[inline]
    fn perform(&mut self, quick: &Quick, values: &mut [Value]) -> Option<()> {
        let value = |slot: u32| at(values, self.globals, slot);
        let (to, result) = match *quick {
            Quick::Slow | Quick::Jump(_) | Quick::Branch { .. } | Quick::Label(_) => return None,
            Quick::Pass => return Some(()),
            Quick::Several { first, count } => {
                let all = self.function.several.get(first as usize..)?.get(..count as usize)?;
                return all.iter().try_for_each(|one| self.perform_one(one, values));
            }
            Quick::Binary { left, right, to, op, compute } => {
                let (&Value::Bits(a, x), &Value::Bits(b, y)) = (value(left)?, value(right)?) else {
                    return None;
                };
                let taint = if x | y == 0 { 0 } else { of_result(op, &[(a, x), (b, y)], u32::BITS) };
                (to, Value::Bits(compute(a, b)?, taint))
            }
            Quick::Number(number) => {
                let numbers = self.function.numbers.get(number as usize)?;
                (numbers.to, numbers.compute(value)?)
            }
            Quick::Select { condition, yes, no, to } => {
                let Value::Bits(holds, taint) = *value(condition)? else { return None };
                (to, value(if holds != 0 { yes } else { no })?.clone().tainted(taint))
            }
            Quick::Load { pointer, to, offset, bytes, truth } => {
                let Value::Pointer(pointer) = value(pointer)? else { return None };
                if pointer.beyond || pointer.taint != 0 || pointer.row_major {
                    return None;
                }
                let object = match pointer.object & LOCAL {
                    0 => self.objects.get(pointer.object as usize)?,
                    _ => self.locals.live().get((pointer.object & !LOCAL) as usize)?,
                };
                let offset = pointer.offset.wrapping_add(offset.into());
                if object.class.is_some() || !object.holds(offset, bytes) {
                    return None;
                }
                let (bits, taint) = object.read(offset, bytes);
                (to, Value::Bits(if truth { u64::from(bits != 0) } else { bits }, taint))
            }
            Quick::Store { pointer, value: stored, offset, bytes } => {
                let (Value::Pointer(pointer), &Value::Bits(bits, taint)) = (value(pointer)?, value(stored)?)
                else {
                    return None;
                };
                if pointer.beyond || pointer.row_major || pointer.object & LOCAL == 0 {
                    return None;
                }
                let offset = pointer.offset.wrapping_add(offset.into());
                let object = self.locals.live_mut().get_mut((pointer.object & !LOCAL) as usize)?;
                if object.class.is_some() || !object.holds(offset, bytes) {
                    return None;
                }
                object.write(offset, bytes, bits, taint);
                return Some(());
            }
            Quick::Chain { pointer, to, chain } => {
                let chain = self.function.chains.get(chain as usize)?;
                let Value::Pointer(base) = value(pointer)? else { return None };
                let shared = base.object & (LOCAL | SHARED) == 0;
                if shared && !self.descriptors.is_empty() && self.descriptors.contains_key(&base.object) {
                    return None;
                }
                (to, Value::Pointer(chain.from(base, value)?))
            }
            Quick::Part(part) => {
                let Part { of, path, to } = self.function.parts.get(part as usize)?;
                let mut part = value(*of)?;
                for index in path {
                    let Value::Many(parts) = part else { return None };
                    part = parts.get(*index as usize)?;
                }
                let part = part.clone();
                return spread(values, *to, part).ok();
            }
            Quick::Make(making) => {
                let Making { parts, to } = self.function.makings.get(making as usize)?;
                let parts = parts.iter().map(|part| gathered(values, self.globals, *part));
                (*to, Value::Many(parts.collect::<Option<_>>()?))
            }
            Quick::Whole(whole) => {
                return self.function.wholes.get(whole as usize)?.compute(values, self.globals);
            }
            Quick::Variable { to, id, ty, bytes } => {
                let at = self.locals.begin(id, bytes as usize, self.spare);
                (to, Value::Pointer(Pointer::to(LOCAL | at as u32, ty)))
            }
        };
        *values.get_mut(to as usize)? = result;
        Some(())
    }

    /// The same out of line, for those that are several.
    fn perform_one(&mut self, quick: &Quick, values: &mut [Value]) -> Option<()> {
        self.perform(quick, values)
    }
}

impl Numbers {
    fn compute<'v>(&self, value: impl Fn(u32) -> Option<&'v Value>) -> Option<Value> {
        let (mut numbers, mut tainted) = ([0; MOST], [(0, 0); MOST]);
        for (at, slot) in self.operands.get(..self.count)?.iter().enumerate() {
            let &Value::Bits(number, taint) = value(*slot)? else { return None };
            (numbers[at], tainted[at]) = (number, (number, taint));
        }
        let tainted = tainted.get(..self.count)?;
        let taint = match self.instruction {
            Instruction::Core(op) => of_result(op, tainted, self.bits),
            _ => tainted.iter().fold(0, |all, (_, taint)| all | taint),
        };
        let numbers = numbers.get(..self.count)?;
        let result = self.instruction.scalar(numbers, self.kind.number(), self.from, self.bits);
        Some(Value::Bits(result?, taint))
    }
}

impl Whole {
    fn compute(&self, values: &mut [Value], globals: &[Value]) -> Option<()> {
        let mut numbers = [0; MOST_NUMBERS];
        let mut operands = [const { None }; MOST];
        let (mut rest, mut taint) = (&mut numbers[..], 0);
        for (operand, (slots, shape)) in operands.iter_mut().zip(&self.operands) {
            let own;
            (own, rest) = rest.split_at_mut_checked(shape.count())?;
            let mut places = own.iter_mut();
            for slot in slots.all() {
                flatten(at(values, globals, *slot)?, &mut places, &mut taint)?;
            }
            *operand = places.next().is_none().then_some(Operand { numbers: own, shape: *shape });
        }
        let given: [Operand<'_>; MOST] = operands.map(|one| one.unwrap_or(NO_OPERAND));
        let all = self.instruction.compute(given.get(..self.operands.len())?, &[self.result])?;
        if all.len() != self.to.all().len() {
            return None;
        }
        for (slot, number) in self.to.all().iter().zip(all) {
            *values.get_mut(*slot as usize)? = Value::Bits(number, taint);
        }
        Some(())
    }
}

/// Puts the numbers of a value where there is room for them.
fn flatten<'n>(
    value: &Value,
    places: &mut impl Iterator<Item = &'n mut u64>,
    taint: &mut Taint,
) -> Option<()> {
    match value {
        Value::Bits(bits, more) => {
            *places.next()? = *bits;
            *taint |= more;
            Some(())
        }
        Value::Many(parts) => parts.iter().try_for_each(|part| flatten(part, places, taint)),
        _ => None,
    }
}

impl Chain {
    /// The part of what a pointer points to.
    fn from<'v>(&self, base: &Pointer, value: impl Fn(u32) -> Option<&'v Value>) -> Option<Pointer> {
        if base.ty != self.base || base.matrix_stride != 0 {
            return None;
        }
        let mut part = Pointer {
            offset: base.offset.wrapping_add(self.offset),
            ty: self.ty,
            coherent: base.coherent | self.coherent,
            beyond: base.beyond | self.beyond,
            stride: self.stride,
            ..*base
        };
        for index in &self.indices {
            let Value::Bits(number, 0) = value(index.slot)? else { return None };
            let number = signed(*number, index.bits) as u64;
            part.offset = part.offset.wrapping_add(index.stride.wrapping_mul(number));
            part.beyond |= index.length.is_some_and(|length| number >= length);
        }
        Some(part)
    }
}

/// Goes on at another block.
fn follow(
    edge: &Edge,
    frame: &mut Frame,
    function: &Function,
    globals: &[Value],
    reached: &mut [bool],
) -> Step<()> {
    if let Some(reached) = reached.get_mut(function.first_site as usize + edge.position) {
        *reached = true;
    }
    while let Some((header, _)) = frame.loops.last() {
        if *header == edge.target || edge.around.contains(header) {
            break;
        }
        frame.loops.pop();
    }
    if edge.header {
        match frame.loops.last_mut() {
            Some((header, bodies)) if *header == edge.target => *bodies += 1,
            _ => frame.loops.push((edge.target, 0)),
        }
    }
    (frame.block, frame.at) = (edge.target, edge.after);
    let Some(moves) = &edge.moves else {
        return Err(malformed("OpPhi without its predecessor").into());
    };
    let missing = || Stop::from(malformed("OpPhi of what has no value"));
    if let [(to, from)] = moves[..] {
        let value = at(&frame.values, globals, from).cloned().ok_or_else(missing)?;
        *frame.values.get_mut(to as usize).ok_or_else(missing)? = value;
    } else if !moves.is_empty() {
        let chosen = moves.iter().map(|(_, from)| at(&frame.values, globals, *from).cloned());
        let chosen: Vec<Value> = chosen.collect::<Option<_>>().ok_or_else(missing)?;
        for ((to, _), value) in moves.iter().zip(chosen) {
            *frame.values.get_mut(*to as usize).ok_or_else(missing)? = value;
        }
    }
    Ok(())
}

impl Machine<'_> {
    /// Executes instructions by what was looked up, `most` at most, up to one for which that does not suffice; how many there
    /// were.
    pub(super) fn quickly(&mut self, here: &mut Here<'_>, most: u64) -> Step<u64> {
        let Invocation { frames, locals, .. } = &mut here.workgroup.invocations[here.index];
        let frame = frames.last_mut().ok_or(Stop::Ended)?;
        let function = &self.program.functions[frame.function];
        let (globals, objects) = (&self.globals[..], &self.objects[..]);
        let descriptors = &self.descriptors;
        let spare = &mut self.spare_objects;
        let mut scene = Scene { function, globals, objects, locals, spare, descriptors };
        let mut done = 0;
        let mut followed = Ok(());
        while done < most {
            let Some(quick) = function.quick.get(frame.at) else { break };
            let edge = match *quick {
                Quick::Label(block) => {
                    if frame.block == 0 {
                        frame.block = block;
                    }
                    if let Some(reached) = self.reached.get_mut(function.first_site as usize + frame.at) {
                        *reached = true;
                    }
                    frame.at += 1;
                    done += 1;
                    continue;
                }
                Quick::Jump(edge) => edge,
                Quick::Branch { condition, yes, no } => match at(&frame.values, globals, condition) {
                    Some(Value::Bits(holds, 0)) => {
                        if *holds != 0 {
                            yes
                        } else {
                            no
                        }
                    }
                    _ => break,
                },
                _ => {
                    if scene.perform(quick, &mut frame.values).is_none() {
                        break;
                    }
                    frame.at += 1;
                    done += 1;
                    continue;
                }
            };
            let Some(edge) = function.edges.get(edge as usize) else { break };
            done += 1;
            followed = follow(edge, frame, function, globals, &mut self.reached);
            if followed.is_err() {
                break;
            }
        }
        self.steps += done;
        followed.map(|()| done)
    }

    /// Goes on at another block.
    pub(super) fn jump(&mut self, here: &mut Here<'_>, target: u32) -> Step<()> {
        let program = self.program;
        let frame = here.frame()?;
        let function = &program.functions[frame.function];
        let edge = function.by_ends.get(&(frame.block, target));
        let Some(edge) = edge.and_then(|edge| function.edges.get(*edge as usize)) else {
            return Err(malformed("a jump to what is no label").into());
        };
        follow(edge, frame, function, &self.globals, &mut self.reached)
    }
}
