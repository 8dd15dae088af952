//! Stories of leftovers and races: what is late, held back, dropped, or seen in an odd order.

use expect_test::expect;

use super::story::{Story, check, name};

#[test]
fn a_put_that_was_never_answered_is_read_again_before_the_host_counts_as_clean() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret unknown + missing + missing
tick 60s
tick 1us
settle ReadSecret done
settle DeleteSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret unknown + missing + missing
            > tick 60s
              alarm waiting
            > tick 1us
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret done
              DeleteSecret bot-r1 (Stop, clean.secret)
              clear waiting
            > settle DeleteSecret done
        "#]],
    );
}

#[test]
fn a_put_that_an_earlier_life_left_behind_is_in_doubt_from_the_list_on() {
    check(
        "
start + listed
want r1 bot-r1
tick 10m
start + nosecret bot-r1 + listed
missing + missing
tick 60s
tick 1us
settle ReadSecret gone
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > tick 10m
              alarm waiting
            > start + nosecret bot-r1 + listed
              clear waiting
            > missing + missing
            > tick 60s
            > tick 1us
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
        "#]],
    );
}

#[test]
fn a_step_that_nobody_answers_is_an_alarm_until_one_is_done() {
    check(
        "
start + listed
want r1 bot-r1
tick 30s
tick 1us
settle PutSecret unsent
tick 1s
settle PutSecret done
settle CreatePod unsent
tick 1s
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > tick 30s
            > tick 1us
              alarm waiting
            > settle PutSecret unsent
            > tick 1s
              PutSecret bot-r1 r1 (Start, bring.start)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
              clear waiting
            > settle CreatePod unsent
            > tick 1s
              CreatePod bot-r1 r1 (Start, bring.start)
            wake in 29s
        "#]],
    );
}

#[test]
fn a_secret_is_not_put_while_the_delete_of_it_is_under_way() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod invalid
want r1 bot-r1 failed
want r1 bot-r1
settle DeleteSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod invalid
              verdict bot-r1 Failed(Refused(Invalid)) (wanted.refused)
              DeleteSecret bot-r1 (Stop, clean.secret)
            > want r1 bot-r1 failed
            > want r1 bot-r1
            > settle DeleteSecret done
              PutSecret bot-r1 r1 (Start, wanted.absent)
        "#]],
    );
}

#[test]
fn a_pod_that_somebody_deletes_while_our_stop_is_held_back_is_not_ended_by_us() {
    check(
        "
start + listed
want r2 bot-r2 live=bot-r2 registered + seen bot-r2 running + seen bot-r1 running + freeze
withheld
seen bot-r1 exited:143 deleting
thaw
        ",
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r2 registered + seen bot-r2 running + seen bot-r1 running + freeze
              tail? bot-r1 app
              DeletePod bot-r1 uid-2 grace=45 (Stop, stop.not_kept)
            > withheld
            > seen bot-r1 exited:143 deleting
              ended bot-r1 uid-2 DeletedByOther
              tail? bot-r1 app ended
            > thaw
            wake in 300s
        "#]],
    );
}

#[test]
fn a_thaw_that_overtakes_what_is_held_back_lets_it_be_decided_again() {
    check(
        "
start + listed
freeze
want r1 bot-r1
thaw + withheld
        ",
        &expect![[r#"
            > start + listed
            > freeze
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > thaw + withheld
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}

#[test]
fn a_retry_covers_a_failure_of_which_this_log_knows_nothing() {
    check(
        "
start + listed
want r1 bot-r1 failed
retry bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 failed
            > retry bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
        "#]],
    );
}

#[test]
fn a_host_that_fails_again_after_a_retry_can_be_retried_by_the_gateway_too() {
    check(
        "
start + listed
want r1 bot-r1 failed
retry bot-r1
settle PutSecret environment
settle ReadSecret gone
want r1 bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 failed
            > retry bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret environment
              verdict bot-r1 Failed(Refused(Environment)) (wanted.refused)
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}

#[test]
fn a_retry_is_over_when_the_gateway_takes_the_failure_back_too() {
    check(
        "
start + listed
want r1 bot-r1 failed
retry bot-r1
want r1 bot-r1
want r1 bot-r1 failed
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 failed
            > retry bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > want r1 bot-r1
            > want r1 bot-r1 failed
              revoke 5 (stop.not_kept)
            wake in 30s
        "#]],
    );
}

#[test]
fn a_forced_delete_that_a_crash_left_behind_is_issued_again() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 + seen bot-r1 running
seen bot-r1 running deleting by=tainted + node n1 lost
tick 301s
start + listed
confirm + node n1 lost
settle DeletePod unknown
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 + seen bot-r1 running
            > seen bot-r1 running deleting by=tainted + node n1 lost
            > tick 301s
              DeletePod bot-r1 uid-1 grace=0 forced (Revive { counted: false }, force.node_not_ready)
              alarm stuck_terminating
            > start + listed
            > confirm + node n1 lost
              DeletePod bot-r1 uid-1 grace=0 forced (Revive { counted: false }, force.node_not_ready)
            > settle DeletePod unknown
              DeletePod bot-r1 uid-1 grace=0 forced (Revive { counted: false }, force.node_not_ready)
            wake in 30s
        "#]],
    );
}

#[test]
fn what_a_node_was_in_an_earlier_life_forces_nothing() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 + seen bot-r1 running
seen bot-r1 running deleting by=tainted + node n1 lost
start + listed
confirm
tick 301s
node n1 lost
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 + seen bot-r1 running
            > seen bot-r1 running deleting by=tainted + node n1 lost
            > start + listed
            > confirm
            > tick 301s
              alarm stuck_terminating
            > node n1 lost
              DeletePod bot-r1 uid-1 grace=0 forced (Revive { counted: false }, force.node_not_ready)
        "#]],
    );
}

#[test]
fn before_the_first_answer_a_host_that_is_not_live_is_not_revived_and_a_live_one_not_stopped() {
    check(
        "
start + listed
want r2 bot-r2 live=bot-r1 registered + seen bot-r2 installing + seen bot-r1 running
start + seen bot-r2 failed:Evicted + listed
confirm
want r1 bot-r1 live=bot-r1 failed
start + listed
confirm
        ",
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r1 registered + seen bot-r2 installing + seen bot-r1 running
            > start + seen bot-r2 failed:Evicted + listed
              ended bot-r2 uid-1 Evicted
            > confirm
              DeletePod bot-r2 uid-1 grace=0 (Revive { counted: false }, wanted.no_fault)
            > want r1 bot-r1 live=bot-r1 failed
              tail? bot-r1 app
              DeletePod bot-r1 uid-2 grace=45 (Stop, stop.not_kept)
            > start + listed
            > confirm
              tail? bot-r1 app
              DeletePod bot-r1 uid-2 grace=45 (Stop, stop.not_kept)
              DeletePod bot-r2 uid-1 grace=0 (Stop, stop.not_kept)
        "#]],
    );
}

#[test]
fn what_is_withdrawn_stays_so_whatever_a_later_answer_misses() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 + seen bot-r1 running
missing
missing
start + listed
missing mass
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 + seen bot-r1 running
            > missing
            > missing
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
            > start + listed
            > missing mass
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
        "#]],
    );
}

#[test]
fn a_stop_that_an_operator_asks_for_says_nothing_about_what_is_wanted() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 + seen bot-r1 running + seen bot-r2 running
start + listed
stop
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > start + listed
            > stop
        "#]],
    );
}

#[test]
fn an_operators_stop_is_over_when_nothing_is_left() {
    check(
        "
start + seen bot-r1 running + listed
stop
settle DeletePod done
tail bot-r1 + gone bot-r1 deleted
settle ReadSecret gone
seen bot-r1 running
        ",
        &expect![[r#"
            > start + seen bot-r1 running + listed
              alarm unclaimed
            > stop
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
              clear unclaimed
            > settle DeletePod done
            > tail bot-r1 + gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByUs
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
            > seen bot-r1 running
              alarm unclaimed
        "#]],
    );
}

#[test]
fn a_create_that_shows_another_pod_than_the_known_one_ends_that_one() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod unknown
seen bot-r1 installing foreign
other bot-r1
settle CreatePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod unknown
              CreatePod bot-r1 r1 (Start, bring.start)
            > seen bot-r1 installing foreign
            > other bot-r1
            > settle CreatePod done
              ended bot-r1 uid-1 Vanished
            wake in 300s
        "#]],
    );
}

#[test]
fn what_a_refused_delete_hindered_does_not_condemn_the_next_pod() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 failed:Evicted
settle DeletePod invalid
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 failed:Evicted
              ended bot-r1 uid-1 Evicted
              DeletePod bot-r1 uid-1 grace=0 (Revive { counted: false }, wanted.no_fault)
            > settle DeletePod invalid
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
        "#]],
    );
}

#[test]
fn a_secret_that_goes_before_its_pod_is_put_again() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod quota
nosecret bot-r1
tick 30s
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod quota
              alarm waiting
            > nosecret bot-r1
            > tick 30s
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}

#[test]
fn hosts_and_nodes_that_nothing_needs_are_forgotten() {
    let mut story = Story::new();
    for line in [
        "start + listed",
        "want r2 bot-r2 + seen bot-r1 running",
        "node n1 lost",
        "tail bot-r1 + gone bot-r1 deleted",
        "settle ReadSecret gone",
    ] {
        let facts = line.split('+').flat_map(|part| story.inputs(part)).collect();
        story.react(facts);
    }
    assert!(!story.app.hosts.contains_key(&name("bot-r1")), "{:?}", story.app.hosts);
    assert!(story.app.nodes.is_empty());
}
