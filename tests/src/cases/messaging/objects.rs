//! G20: values of any serde type as messages, and as arguments and results of handlers.

use crate::exchange::{next, previous};
use crate::expected_error::{disagreed, misused};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;
use tasuki::message::{Object, set_send_buffer};
use tasuki::{ErrorKind, Handler, HandlerCx, Handlers, Job, Rank, Request, Result, Slot};

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
enum Shape {
    Point,
    Circle { centre: (f64, f64), radius: f64 },
    Polygon(Vec<(f64, f64)>),
    Group(Box<[Shape]>),
}

type Stock = HashMap<String, Vec<Option<u64>>>;

fn stock(entries: u64) -> Stock {
    (0..entries).map(|number| (format!("item {number}"), vec![Some(number), None, Some(u64::MAX)])).collect()
}

fn shapes() -> Shape {
    let circle = Shape::Circle { centre: (0.5, -2.0), radius: 1e300 };
    Shape::Group([Shape::Point, circle, Shape::Polygon(vec![(1.0, 2.0); 1000])].into())
}

/// Its bytes do not decode: it is one number, and decodes two.
#[derive(Debug)]
struct Lopsided;

impl Serialize for Lopsided {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(1)
    }
}

impl<'de> Deserialize<'de> for Lopsided {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lopsided, D::Error> {
        <(u64, u64)>::deserialize(deserializer).map(|_| Lopsided)
    }
}

/// It cannot be encoded.
#[derive(Deserialize, Debug)]
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(0).and(Err(serde::ser::Error::custom("it is stubborn")))
    }
}

/// Sends an object to the next rank and receives one from the one before, in both orders of beginning.
fn exchanged<T>(job: &Job, value: &T) -> Result<()>
where
    T: Serialize + serde::de::DeserializeOwned + PartialEq + Debug + 'static,
{
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(5));
    for named in [slot, Slot::ANY] {
        let receive = || -> Result<()> {
            let (got, received) = world.recv_object::<T>(from, named)?;
            assert_eq!(got, *value);
            assert_eq!((received.slot, received.count, received.source.0), (slot, 1, from.0));
            Ok(())
        };
        if job.rank().0.is_multiple_of(2) {
            world.send_object(value, to, slot)?;
            receive()?;
        } else {
            receive()?;
            world.send_object(value, to, slot)?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// Objects of many types arrive.
pub fn g20_objects_of_many_types_arrive(job: &Job) -> Result<()> {
    exchanged(job, &String::new())?;
    exchanged(job, &String::from("a text"))?;
    exchanged(job, &"long ".repeat(50_000))?;
    exchanged(job, &vec![Some(3_u8), None, Some(7)])?;
    exchanged(job, &stock(300))?;
    exchanged(job, &shapes())?;
    exchanged(job, &())
}

/// An object meets no receive of plain values, of bytes, or of an object of another type; and the other way about.
pub fn g20_objects_match_their_type_only(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends of another type learn of it from their receive
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(5));
    for text in [String::from("short"), "long ".repeat(5_000)] {
        for named in [slot, Slot::ANY] {
            // As bytes, and as numbers.
            let mut receiving = world.irecv_vec::<u8>(from, named)?;
            job.barrier()?;
            disagreed(
                job,
                world.send_object(&text, to, slot),
                &["send_object(slot 5 to", "an object of type alloc::string::String", "u8"],
            );
            disagreed(job, receiving.wait(), &["the message has an object, but the receive wants u8"]);
            job.barrier()?;
            let mut receiving = world.irecv(vec![0.5; 10_000], from, named)?;
            job.barrier()?;
            disagreed(job, world.send_object(&text, to, slot), &["recv_object", "f64"]);
            disagreed(job, receiving.wait(), &["an object", "f64"]);
            job.barrier()?;
            // Bytes and numbers as objects.
            let mut sending = world.isend(text.clone().into_bytes(), to, slot)?;
            job.barrier()?;
            disagreed(
                job,
                world.recv_object::<String>(from, named),
                &["recv_object(", "u8", "an object of type alloc::string::String"],
            );
            disagreed(job, sending.wait(), &["u8", "an object"]);
            job.barrier()?;
            // An object of another type. The sender may not be able to tell the types apart.
            if job.rank().0.is_multiple_of(2) {
                let _ = world.send_object(&text, to, slot);
                disagreed(
                    job,
                    world.recv_object::<Shape>(from, named),
                    &["an object of another type", "Shape"],
                );
            } else {
                disagreed(
                    job,
                    world.recv_object::<Shape>(from, named),
                    &["an object of another type", "Shape"],
                );
                let _ = world.send_object(&text, to, slot);
            }
            job.barrier()?;
        }
        exchanged(job, &text)?;
    }
    Ok(())
}

/// An object that cannot be encoded is not sent. One that does not decode is an error that says so, and is lost.
pub fn g20_objects_that_do_not_decode_are_errors(job: &Job) -> Result<()> {
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(5));
    let texts =
        ["send_object(slot 5 to rank", "Stubborn", "cannot be encoded", "its own `Serialize` has failed"];
    misused(job, world.send_object(&Stubborn, to, slot), &texts);
    let receive = || -> Result<()> {
        let texts = ["recv_object(slot 5 from rank", "Lopsided", "do not decode", "must agree", "is lost"];
        let error = disagreed(job, world.recv_object::<Lopsided>(from, slot), &texts);
        assert_eq!(error.peer(), Some(from), "{error}");
        assert_eq!(world.recv_object::<u64>(from, slot)?.0, 7, "the next one");
        Ok(())
    };
    let send = || -> Result<()> {
        world.send_object(&Lopsided, to, slot)?;
        world.send_object(&7_u64, to, slot)
    };
    if job.rank().0.is_multiple_of(2) {
        send().and_then(|()| receive())?;
    } else {
        receive().and_then(|()| send())?;
    }
    misused(job, world.recv_object::<u64>(None::<Rank>, slot), &["an object from None"]);
    world.send_object(&7, None::<Rank>, slot)
}

/// Objects through a receive queue: in a slot, and too long for one. Plain values and objects do not match.
pub fn g20_objects_through_a_receive_queue(job: &Job) -> Result<()> {
    let mut inbox = job.receive_queue(8, 64)?;
    let addresses = job.world().allgather(&[inbox.address()])?;
    let mut to = job.open_receive_queue(addresses[next(job).0])?;
    to.send_object(&String::from("first"), Slot(1))?;
    to.send(&[5_u8], Slot(2))?;
    to.send_object(&shapes_in_a_slot(), Slot(3))?;
    let (text, received) = inbox.recv_object::<String>(Slot(1))?;
    assert_eq!((text.as_str(), received.source.0, received.count), ("first", previous(job).0, 1));
    disagreed(job, inbox.recv_object::<u8>(Slot(2)), &["u8"]);
    disagreed(job, inbox.recv_vec::<u8>(Slot(3)), &["an object"]);
    assert_eq!(inbox.recv_vec::<u8>(Slot(2))?.0, [5]);
    assert_eq!(inbox.recv_object::<Shape>(Slot::ANY)?.0, shapes_in_a_slot());
    job.barrier()?;
    if job.rank() == 0 && job.size() > 1 {
        to.send_object(&shapes(), Slot(0))?; // waits until it is received
    } else if job.rank() == 1 {
        assert_eq!(inbox.recv_object::<Shape>(Slot::ANY)?.0, shapes());
    }
    job.barrier()
}

/// Objects from any member: in a buffer of the queue, and too long for one. Plain values and objects do not match.
pub fn g20_objects_from_any_member(job: &Job) -> Result<()> {
    let world = job.world();
    world.send_any_object(&String::from("first"), next(job), Slot(1))?;
    world.send_any(&[5_u8], next(job), Slot(2))?;
    world.send_any_object(&shapes_in_a_slot(), next(job), Slot(3))?;
    disagreed(job, world.recv_any_object::<u8>(Slot(2)), &["u8"]);
    disagreed(job, world.recv_any_vec::<u8>(Slot(3)), &["an object"]);
    let (shape, received) = world.recv_any_object::<Shape>(Slot(3))?;
    assert_eq!((shape, received.source.0), (shapes_in_a_slot(), previous(job).0));
    let (text, received) = world.recv_any_object::<String>(Slot::ANY)?;
    assert_eq!((text.as_str(), received.slot, received.count), ("first", Slot(1), 1));
    assert_eq!(world.recv_any_vec::<u8>(Slot(2))?.0, [5]);
    let stock = stock(100);
    if job.rank() == 0 && job.size() > 1 {
        world.send_any_object(&stock, next(job), Slot(0))?; // waits until it is received
    } else if job.rank() == 1 {
        assert_eq!(world.recv_any_object::<Stock>(Slot::ANY)?.0, stock);
    }
    world.send_any_object(&Lopsided, next(job), Slot(4))?;
    let error = world.recv_any_object::<Lopsided>(Slot(4)).expect_err("it does not decode");
    assert!(error.to_string().contains("recv_any_object(slot 4"), "{error}");
    assert_eq!(world.try_recv_any_vec::<u8>(Slot::ANY)?, None);
    world.send_any_object(&7, None::<Rank>, Slot(0))
}

fn shapes_in_a_slot() -> Shape {
    Shape::Polygon(vec![(1.0, 2.0); 3])
}

const COUNT: Handler<Object<Vec<String>>, Object<HashMap<String, u64>>> =
    Handler::new("count objects", count);
const FLIP: Handler<Object<Shape>, u64> = Handler::new("take an object", |_, Object(shape)| match shape {
    Shape::Group(shapes) => shapes.len() as u64,
    _ => 0,
});
const GIVE: Handler<u64, Object<Lopsided>> = Handler::new("give what does not decode", |_, _| Lopsided);
const TAKE: Handler<Object<Lopsided>, ()> = Handler::new("take what does not decode", |_, _| ());

fn count(_: &HandlerCx<'_>, Object(words): &Object<Vec<String>>) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    words.iter().for_each(|word| *counts.entry(word.clone()).or_default() += 1);
    counts
}

pub(crate) fn add_to(handlers: Handlers) -> Handlers {
    handlers.add(COUNT).add(FLIP).add(GIVE).add(TAKE)
}

/// Handlers take and return objects, short and long. What does not decode is an error of the call.
pub fn g20_objects_as_arguments_and_results(job: &Job) -> Result<()> {
    for to in job.ranks() {
        for length in [0, 1, 3_000] {
            let words = (0..length).map(|number| format!("word {}", number % 7)).collect();
            let counts = COUNT.call(job, to, &Object(words))?.wait()?;
            assert_eq!((counts.len(), counts.values().sum()), (length.min(7), length as u64));
        }
        assert_eq!(FLIP.call(job, to, &Object(shapes()))?.wait()?, 3);
        FLIP.post(job, to, &Object(Shape::Point))?;
        job.flush_calls()?;
        let texts = ["Lopsided", "do not decode", "wait(reply of rank"];
        disagreed(job, GIVE.call(job, to, &0)?.wait(), &texts);
        let error = TAKE.call(job, to, &Object(Lopsided))?.wait().expect_err("it does not decode");
        assert_eq!(error.kind(), ErrorKind::Program, "{error}");
        assert!(error.to_string().contains("do not decode"), "{error}");
    }
    // As a command, if the encoding is short.
    let (done, queue) = (job.signal()?, job.queue(4)?);
    let command = FLIP.command(next(job), &Object(Shape::Point));
    queue.post(command.then(done.on(job.rank()).add(1)))?;
    done.wait_at_least(1)?;
    misused(job, queue.post(FLIP.command(next(job), &Object(shapes()))), &["at most 48 bytes"]);
    job.barrier()
}

/// Objects whose sends and receives were begun, around a ring, waited for in each way.
pub fn g20_begun_objects_arrive(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends of another type learn of it from their receive
    let (world, to, from, me) = (job.world(), next(job), previous(job), job.rank().0 as u64);
    for (round, named) in (0..).zip([Slot(5), Slot::ANY, Slot(5), Slot::ANY]) {
        let mut receive = world.irecv_object::<Stock>(from, named)?;
        assert!(round > 0 || job.size() == 1 || !receive.test() || me != 0, "nobody has sent yet");
        let mut send = world.isend_object(&stock(me * 50 + round), to, Slot(5))?;
        let (got, received) = match round % 3 {
            0 => receive.wait()?,
            1 => tasuki::block_on(&mut receive)?,
            _ => {
                while !receive.test() {
                    job.compute(Duration::from_micros(1));
                }
                receive.wait_timeout(Duration::ZERO)?.expect("it has arrived")
            }
        };
        assert_eq!(got, stock(from.0 as u64 * 50 + round));
        assert_eq!((received.slot, received.count, received.source.0), (Slot(5), 1, from.0));
        send.wait()?;
        job.barrier()?;
    }
    // A dropped receive loses no object, and a cancelled one takes none.
    drop(world.irecv_object::<Stock>(from, Slot(6))?);
    let mut cancelled = world.irecv_object::<Stock>(from, Slot(7))?;
    assert!(cancelled.cancel() && !cancelled.cancel());
    let mut sends = [Slot(6), Slot(7)].map(|slot| world.isend_object(&stock(3), to, slot));
    for slot in [Slot(6), Slot(7)] {
        assert_eq!(world.irecv_object::<Stock>(from, slot)?.wait()?.0, stock(3));
    }
    for send in &mut sends {
        send.as_mut().map_err(|error| error.clone())?.wait()?;
    }
    job.barrier()?;
    // Of another type, to nobody, from nobody.
    let mut send = world.isend_object(&String::from("text"), to, Slot(8))?;
    let got = world.irecv_object::<Vec<f64>>(from, Slot(8))?.wait();
    disagreed(job, got, &["alloc::vec::Vec<f64>"]);
    disagreed(job, send.wait(), &["alloc::string::String"]);
    world.isend_object(&stock(1), None::<Rank>, Slot(8))?.wait()?;
    misused(job, world.irecv_object::<Stock>(None::<Rank>, Slot(8)).map(drop), &["nobody sends one"]);
    job.barrier()
}
