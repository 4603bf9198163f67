// With vitest and jest, whose functions are global: two of the tests have to fail.

import { withMock } from 'kproto'

const rule = { name: 'unused', api: 'Produce', error: 'NOT_CONTROLLER' }

test('passes', withMock({ topics: ['foo:1:3'] }, async mock => {
  await mock.append('foo-0', { records: [{ value: 'a' }] })
  expect((await mock.records('foo-0'))[0].value).toBe('a')
}))

test('throws', withMock({}, async mock => {
  await mock.advance('1s')
  throw new Error('deliberate')
}))

test('strict', withMock({ strict_faults: true, faults: [rule] }, async () => {}))
