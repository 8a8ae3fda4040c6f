//! Compares the simulated times of small schedules with times that were computed by hand.

use super::{HostModel, Simulation, SimulationError};
use crate::network::{Grid, Network, Parameters, Time, Topology};
use crate::{BufferId, Contract, RankPart, Schedule, started};

const BYTES: u64 = 100;
const DATA: BufferId = BufferId::FIRST;

/// A row of nodes with `per_node` ranks each. L is 10 ns, G 1 ns, g 5 ns; a link takes 1 ns for a
/// byte; each node has two engines.
fn row(nodes: u64, per_node: u64) -> Network {
    let parameters = Parameters {
        latency: Time::nanoseconds(10),
        byte: Time::nanoseconds(1),
        byte_inside: Time::nanoseconds(1),
        gap: Time::nanoseconds(5),
        link_byte: Time::nanoseconds(1),
        reduce_byte: Time::nanoseconds(2),
        engines: 2,
        ..Parameters::default()
    };
    Network { topology: Topology::Grid(Grid::mesh(&[nodes])), parameters, per_node }
}

fn schedule(ranks: usize, part: impl Fn(&mut RankPart) + Send + Sync + 'static) -> Schedule {
    Schedule::new("test", ranks, part, |_| Contract::default())
}

fn ns(count: u64) -> Time {
    Time::nanoseconds(count)
}

/// Rank 0 sends bytes to rank 1, which forwards them to rank 2, and so on.
fn relay(ranks: usize) -> Schedule {
    schedule(ranks, move |part| {
        let (me, last) = (part.rank(), part.rank() + 1 == ranks);
        part.buffer("data", BYTES);
        let ready = part.signal("ready", u64::from(!last));
        let arrived = part.signal("arrived", u64::from(me > 0));
        let sent = part.signal("sent", u64::from(!last));
        part.join(started());
        if me > 0 {
            part.join(ready.reaches(u64::from(!last))).then(ready.on(me - 1, 1));
        }
        if !last {
            if me == 0 {
                part.join(ready.reaches(1));
            }
            let trigger = arrived.reaches(u64::from(me > 0));
            part.copy(trigger, DATA.on(me, 0), DATA.on(me + 1, 0), BYTES)
                .then(arrived.on(me + 1, 1))
                .then(sent.on(me, 1));
            part.finish(sent.reaches(1));
        }
        part.finish(arrived.reaches(u64::from(me > 0)));
    })
}

#[test]
fn a_relay_takes_the_sum_of_its_parts() {
    // Rank 2 begins its first join at 0 and its ready signal at 5, which reaches rank 1 at 15. The
    // ready signal of rank 1 reaches rank 0 at 25, where a join takes 5. So the copy reaches rank 1
    // at 30 + 10 + 100, and the next one reaches rank 2 110 later. Its end is signalled to rank 1
    // at 260.
    let network = row(3, 1);
    let simulated = relay(3).simulate(&network).unwrap();
    assert_eq!(simulated.time, ns(260));
    assert_eq!((simulated.first_end, simulated.median_end), (ns(150), ns(250)));
    assert_eq!(simulated.moves_from, ns(30));
    assert_eq!((simulated.steps, simulated.bytes, simulated.bytes_between), (8, 200, 200));
    // Rank 1 has three steps, and four signals with the start signal.
    assert_eq!((simulated.memory_max, simulated.memory_all), (3 * 64 + 4 * 8, 8 * 64 + 3 * 4 * 8));
    let used = simulated.busiest.unwrap();
    assert_eq!((used.link, used.bytes, used.busy), (0, 100, ns(100)));
    assert!((simulated.busiest_share() - 100.0 / 260.0).abs() < 1e-12);
    // On one node no transfer uses a link. Three ranks share two engines: ranks 0 and 2 have the
    // same one.
    let simulated = relay(3).simulate(&row(1, 3)).unwrap();
    assert_eq!((simulated.bytes, simulated.bytes_between, simulated.busiest), (200, 0, None));
}

#[test]
fn simulations_are_deterministic() {
    let network = row(40, 2);
    let once = || Simulation::new(&relay(77), &network).starts(3).run();
    assert_eq!(once(), once());
}

#[test]
fn starts_follow_each_other() {
    let network = row(3, 1);
    relay(3).check().unwrap();
    let times: Vec<Time> = (1..=3)
        .map(|starts| Simulation::new(&relay(3), &network).starts(starts).run().unwrap().time)
        .collect();
    // The start of rank 1 was over at 260. Its next ready signal reaches rank 0 5 + 10 after the 15
    // of rank 2's.
    assert_eq!(times[1], ns(260 + 15 + 5 + 110 + 110 + 10));
    assert_eq!(times[2] - times[1], times[1] - times[0]);
}

/// Copies from one node to the next, one in each of `queues` queues.
fn copies(queues: u16) -> Schedule {
    schedule(2, move |part| {
        let count = u64::from(queues);
        part.buffer("data", BYTES * count);
        let arrived = part.signal("arrived", if part.rank() == 1 { count } else { 0 });
        if part.rank() == 0 {
            for queue in 0..queues {
                part.in_queue(queue);
                let at = u64::from(queue) * BYTES;
                part.copy(started(), DATA.on(0, at), DATA.on(1, at), BYTES).then(arrived.on(1, 1));
            }
        } else {
            part.finish(arrived.reaches(count));
        }
    })
}

#[test]
fn engines_and_links_carry_one_transfer_at_a_time() {
    // Two engines begin two copies at once, and the second one waits 100 for the link. The first
    // engine is free at 105; its next copy finds the link taken until 200.
    let network = row(2, 1);
    assert_eq!(copies(1).simulate(&network).unwrap().time, ns(110));
    assert_eq!(copies(2).simulate(&network).unwrap().time, ns(210));
    assert_eq!(copies(3).simulate(&network).unwrap().time, ns(310));
    // If no copy waits for the link, only the engine counts, which queues 0 and 2 share.
    let mut network = network;
    network.parameters.link_byte = Time::ZERO;
    assert_eq!(copies(2).simulate(&network).unwrap().time, ns(110));
    assert_eq!(copies(3).simulate(&network).unwrap().time, ns(105 + 110));
    assert_eq!(copies(4).simulate(&network).unwrap().time, ns(105 + 110));
}

/// Ranks 0 and 2 each copy bytes to rank 1 between them, by the queue with the given number.
fn from_both_sides(queues: [u16; 2]) -> Schedule {
    schedule(3, move |part| {
        part.buffer("data", 2 * BYTES);
        let is_middle = part.rank() == 1;
        let arrived = part.signal("arrived", if is_middle { 2 } else { 0 });
        if is_middle {
            part.finish(arrived.reaches(2));
        } else {
            let side = part.rank() / 2;
            part.in_queue(queues[side]);
            let to = DATA.on(1, side as u64 * BYTES);
            part.copy(started(), DATA.on(part.rank(), 0), to, BYTES).then(arrived.on(1, 1));
        }
    })
}

#[test]
fn transfers_from_many_senders_queue_at_the_receiver() {
    // The copies use different links, and both begin to arrive at 10. The engine of the receiver
    // takes 100 + 5 for the first one, so the second one has arrived at 10 + 105 + 100.
    let network = row(3, 1);
    assert_eq!(from_both_sides([0, 0]).simulate(&network).unwrap().time, ns(215));
    // Queues 0 and 2 run on one engine, queues 0 and 1 on two.
    assert_eq!(from_both_sides([0, 2]).simulate(&network).unwrap().time, ns(215));
    assert_eq!(from_both_sides([0, 1]).simulate(&network).unwrap().time, ns(110));
}

#[test]
fn the_memory_of_a_simulation_is_estimated() {
    let few = relay(3).part(1).simulation_bytes();
    let many = copies(40).part(0).simulation_bytes();
    assert!(few > 3 * size_of::<crate::Step>() as u64 && many > 5 * few, "{few} {many}");
}

#[test]
fn reductions_take_time_and_third_parties_send_requests() {
    let sum = schedule(3, |part| {
        part.buffer("data", BYTES);
        let arrived = part.signal("arrived", u64::from(part.rank() == 2));
        if part.rank() == 0 {
            // A request takes 10 from rank 0 to rank 1, the values 110 to rank 2, and combining
            // them 200.
            part.reduce(started(), DATA.on(1, 0), DATA.on(2, 0), BYTES, false).then(arrived.on(2, 1));
        }
        part.finish(arrived.reaches(u64::from(part.rank() == 2)));
    });
    assert_eq!(sum.simulate(&row(3, 1)).unwrap().time, ns(10 + 110 + 200));
}

#[test]
fn effects_of_one_queue_on_one_signal_arrive_in_order() {
    // The join is over at once, but its effect arrives after the effect of the copy before it.
    let ordered = schedule(2, |part| {
        part.buffer("data", BYTES);
        let own = part.signal("own", if part.rank() == 0 { 3 } else { 0 });
        if part.rank() == 0 {
            part.copy(started(), DATA.on(0, 0), DATA.on(1, 0), BYTES).then(own.on(0, 1));
            part.join(started()).then(own.on(0, 2));
            part.finish(own.reaches(2));
        }
    });
    assert_eq!(ordered.simulate(&row(2, 1)).unwrap().time, ns(120));
}

#[test]
fn computing_hosts_delay_only_their_own_steps() {
    let network = row(3, 1);
    let time = |compute, offloaded| {
        let host = HostModel { compute: ns(compute), varies: Time::ZERO, offloaded };
        Simulation::new(&relay(3), &network).host(host).run().unwrap().time
    };
    assert_eq!(time(1000, true), ns(1000));
    assert_eq!(time(100, true), ns(260));
    // Rank 2 makes its first join in the call that starts. It signals that it is ready only in its
    // next call, at 1000, and all later steps follow from that.
    assert_eq!(time(1000, false), ns(1000 + 255));
    assert_eq!(time(0, false), ns(260));
}

#[test]
fn varying_host_times_are_bounded_and_deterministic() {
    let host = HostModel { compute: ns(1000), varies: ns(500), offloaded: true };
    let times: Vec<Time> = (0..200).map(|rank| host.computes(rank, rank % 7)).collect();
    assert!(times.iter().all(|time| (ns(1000)..ns(1500)).contains(time)));
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least < ns(1050) && *most > ns(1450), "{least} {most}");
    assert_eq!(host.computes(3, 4), host.computes(3, 4));
    assert_ne!(host.computes(3, 4), host.computes(4, 3));
}

#[test]
fn deadlocks_are_reported() {
    let stuck = schedule(3, |part| {
        let never = part.signal("never", 1);
        part.join(started());
        part.join(never.reaches(2)).then(never.on(0, 1));
        part.finish(never.reaches(1));
    });
    let error = stuck.simulate(&row(3, 1)).unwrap_err();
    let SimulationError::BlockedStep { ranks: 3, ref first, .. } = error else { panic!("{error}") };
    assert_eq!((first[0].at.rank, first[0].at.step, first[0].wanted), (0, Some(1), 2));
    assert!(
        error.to_string().contains("step 1 of rank 0 in start 0 waits until signal \"never\" has counted 2"),
        "{error}"
    );

    let nowhere = schedule(2, |part| {
        let signal = part.signal("signal", 1);
        part.join(started()).then(signal.on(7, 1));
    });
    assert!(
        matches!(nowhere.simulate(&row(2, 1)), Err(SimulationError::NoSuch { at }) if at.step == Some(0))
    );
    let no_signal = schedule(2, |part| {
        if part.rank() == 0 {
            let signal = part.signal("signal", 1);
            part.join(started()).then(signal.on(1, 1));
        }
        let waits = part.signal("waits", 1);
        part.finish(waits.reaches(1));
    });
    assert!(no_signal.simulate(&row(2, 1)).is_err());
    assert_eq!(relay(3).simulate(&row(2, 1)), Err(SimulationError::NoRoom { ranks: 3, room: 2 }));
}
