KNOWLEDGE = ()
def learn(spark, options, say):
    return []
