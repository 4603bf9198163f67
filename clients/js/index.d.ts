import type {
  Action, Cluster, ClusterOptions, CommittedOffset, Fault, Group, JournalEntry, Operations, Record as KafkaRecord,
  Rule, State
} from './types.d.ts'

export type * from './types.d.ts'

/** Filters of the journal; `after` is the sequence number before the first entry. */
export interface Filters {
  api?: string | number
  broker?: number
  connection?: number
  client_id?: string
  client_software?: string
  direction?: 'request' | 'response' | 'event'
  event?: string
  after?: number
  last?: number
  limit?: number
}

/** Filters, and the time to wait: `30s` by default, a minute at most. */
export interface WaitFilters extends Omit<Filters, 'last' | 'limit'> {
  timeout?: string
}

/** A running cluster. */
export interface Mock extends Operations {
  readonly cluster: Cluster
  /** The brokers' addresses, comma-separated. */
  readonly bootstrap: string
  readonly brokers: string[]
  /** Stop the cluster. Throws for fault rules that had to be hit and were not. */
  stop(): Promise<void>
  /** Add a fault rule in front of the existing ones. */
  fault(rule: Fault): Promise<void>
  rules(): Promise<Rule[]>
  state(): Promise<State>
  /** The recorded requests of an API, given by name or key. */
  requests(api: string, filters?: Filters): Promise<JournalEntry[]>
  journal(filters?: Filters): Promise<JournalEntry[]>
  journalText(): Promise<string>
  /** The first request of an API, past or to come. */
  waitFor(api: string, filters?: WaitFilters): Promise<JournalEntry>
  waitForCount(count: number, api: string, filters?: WaitFilters): Promise<JournalEntry[]>
  /** With `committed` those that a consumer with read_committed gets, without aborted transactions. */
  records(partition: string, options?: { committed?: boolean }): Promise<KafkaRecord[]>
  groups(): Promise<{ [id: string]: Group }>
  waitForGroup(group: string, wanted?: { state?: string, members?: number, timeout?: string }): Promise<Group>
  committed(group: string): Promise<{ [partition: string]: CommittedOffset }>
  carryOut(operation: string, body: object): Promise<Action[]>
}

export class RefusedError extends Error {
  status: number
}

export function start(options?: ClusterOptions): Promise<Mock>

export function withMock<Context extends unknown[]>(
  options: ClusterOptions, body: (mock: Mock, ...context: Context) => Promise<void>
): (...context: Context) => Promise<void>
